import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs
import Synchronization

/// An upload on its way into a bucket. Bytes go on while they arrive, as a part whose length is the least of the size of a
/// part and what the request still brings. What does not fill a part becomes an object of its own, the tail, which is read
/// back as the beginning of the next part.
final class S3Reception: Reception {
  let id: UploadID
  private let target: ServedPath
  private let modified: ModificationTime?
  let store: S3Store
  let state: Mutex<State>
  private var bucket: S3Bucket { store.bucket }
  /// Whether other servers share the upload.
  var isShared: Bool { store.records.claims != nil }

  init(
    _ id: UploadID, for target: ServedPath, _ modified: ModificationTime?, _ stored: StoredBytes, total: Int64?,
    under fence: Int64?, _ store: S3Store
  ) {
    (self.id, self.target, self.modified, self.store) = (id, target, modified, store)
    state = Mutex(State(stored: stored, total: total, room: store.quota.room(of: id), fence: fence))
  }

  /// The claim under which the upload is changed; nil: nothing of it is kept yet.
  var fence: Int64? { state.withLock { $0.fence } }

  var length: Int64 { state.withLock { $0.length } }
  var safeLength: Int64 { state.withLock { $0.isSettled ? $0.length : $0.current.length } }

  func expect(_ count: Int64?) { state.withLock { $0.coming = count } }

  func append(_ piece: BodyPiece) throws(ServerError) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("a store in the network takes no pipes") }
    try change { (state) throws(ServerError) in
      if state.isOutdated { throw .claimIsLost }
      state.isSettled = false
      var rest = bytes
      do throws(ServerError) {
        let end = state.length + Int64(bytes.count)
        if end > state.room { state.room = try store.quota.reserve(id, held: end) }
        while !rest.isEmpty {
          let count = try take(rest, &state)
          state.coming = state.coming.map { $0 - Int64(count) }
          rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
        }
      } catch {
        drop(&state)
        throw error
      }
    }
  }

  /// Drops the bytes that the bucket does not have.
  private func drop(_ state: inout State) {
    state.dropUnstored()
    store.quota.shrink(id, held: state.current.length)
    state.room = store.quota.room(of: id)
  }

  /// Takes some of the bytes, and returns how many.
  private func take(_ bytes: UnsafeRawBufferPointer, _ state: inout State) throws(ServerError) -> Int {
    if state.sender == nil, state.permit == nil { try begin(&state) }
    if let sender = state.sender {
      let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(clamping: sender.left)))
      try sender.write(piece)
      if sender.left == 0 { try end(sender, &state) }
      return piece.count
    }
    let size = Int(store.leastPart(of: state.current.next))
    let piece = bytes.prefix(size - state.buffer.count)
    state.buffer += piece
    if state.buffer.count == size { try sendBuffer(&state) }
    return piece.count
  }

  /// Decides where the next bytes go.
  private func begin(_ state: inout State) throws(ServerError) {
    let stored = state.current
    guard let coming = state.coming else {
      // A part needs its length before its first byte, so it is collected in memory.
      guard let permit = store.memory.take(Int(store.leastPart(of: stored.next))) else {
        var error = ServerError(
          503, "too many uploads of unknown length at once: send Content-Length, or try again in a moment")
        error.headers["Retry-After"] = "5"
        throw error
      }
      state.permit = permit
      if stored.tail.length > 0 { state.buffer = try store.tails.read(of: id, stored.tail) }
      return
    }
    let isShort = stored.isEmpty && coming == state.total && coming <= S3Store.mostInMemory
    if isShort, let permit = store.memory.take(Int(coming)) {
      state.permit = permit
      return
    }
    let length = min(store.partSize(of: stored.next), stored.tail.length + coming)
    let isPart = length >= store.leastPart(of: stored.next) || stored.inParts + length == state.total
    let sender = try isPart ? partSender(length, &state) : tailSender(length, &state)
    state.sender = sender
    if stored.tail.length > 0 { try store.tails.copy(of: id, stored.tail, to: sender) }
  }

  private func tailSender(_ length: Int64, _ state: inout State) throws(ServerError) -> PartSender {
    let stored = state.current
    if !stored.tailGenerations.contains(stored.generation) { try keep(StoredBytes.Note(hasTails: true), &state) }
    let target = bucket.tailTarget(of: id, state.nextTail(isShared: isShared), length: length)
    return PartSender(length: length, bucket) { slice, s3, context async throws(UploadError) in
      let part = Part(number: 1, start: 0, length: length, isLast: true)
      _ = try await s3.create(target, first: FirstPart(part, slice), context)
      return nil
    }
  }

  private func partSender(_ length: Int64, _ state: inout State) throws(ServerError) -> PartSender {
    let session = try session(&state)
    let stored = state.current
    let part = Part(number: stored.next, start: stored.inParts, length: length, isLast: false)
    return PartSender(length: length, bucket) { slice, s3, context async throws(UploadError) in
      guard case .receipt(let receipt, _) = try await s3.send(part, slice, to: session, context) else { return nil }
      return receipt
    }
  }

  /// The multipart upload, which is begun now if there is none.
  private func session(_ state: inout State) throws(ServerError) -> UploadSession {
    if let session = bucket.session(of: state.current) { return session }
    let (session, intent) = try store.intents.begin(bucket.target(target, length: state.total, modified))
    do throws(ServerError) { try keep(StoredBytes.Note(session: session), fulfilling: intent, &state) } catch {
      store.intents.end(intent, session)
      // The server that goes on with the upload knows nothing of this one.
      if error.isLossOfClaim {
        clean { s3, context async throws(UploadError) in try await s3.abort(session, context) }
      }
      throw error
    }
    store.intents.fulfil(intent)
    return session
  }

  /// Deletes from the bucket what no note tells of. If that fails, it stays: the claim is lost, so nobody waits.
  private func clean(_ work: @escaping @Sendable (S3Multipart, UploadContext) async throws(UploadError) -> Void) {
    _ = bucket.start(work)
  }

  /// Notes what must be deleted one day, whether or not the bytes are provisional.
  private func keep(
    _ note: StoredBytes.Note, fulfilling intent: UploadID? = nil, _ state: inout State
  ) throws(ServerError) {
    try store(note, fulfilling: intent, &state)
    state.stored.take(note)
    state.held?.stored.take(note)
  }

  private func store(
    _ note: StoredBytes.Note, fulfilling intent: UploadID? = nil, _ state: inout State
  ) throws(ServerError) {
    if state.isOutdated { throw .claimIsLost }
    do throws(ServerError) {
      state.fence = try store.records.note(
        note.line, state.stored.notes + 1, for: id, under: state.fence, fulfilling: intent)
    } catch {
      giveUp(&state)
      throw error
    }
  }

  /// Ends the use of an upload that is shared, if it is not known what of the last change was stored: the next request goes
  /// on from what is stored, and uses no number and no name again.
  private func giveUp(_ state: inout State) {
    if !isShared { return }
    state.isOutdated = true
    store.records.drop(id, under: state.fence)
  }

  private func end(_ sender: PartSender, _ state: inout State) throws(ServerError) {
    let receipt: PartReceipt?
    let sha256: String
    do throws(ServerError) { (receipt, sha256) = try sender.finish() } catch {
      giveUp(&state)
      throw error
    }
    state.sender = nil
    let tail = state.nextTail(isShared: isShared)
    var note = StoredBytes.Note()
    if let receipt {
      note.part = StoredBytes.Piece(receipt: receipt, sha256: sha256)
    } else {
      note.tail = StoredBytes.Tail(
        length: sender.length, sha256: sha256, isSecond: tail.isSecond, generation: tail.generation)
    }
    if state.held == nil {
      do throws(ServerError) { try store(note, &state) } catch {
        if error.isLossOfClaim, receipt == nil {
          let url = bucket.tail(of: id, tail)
          clean { s3, context async throws(UploadError) in try await s3.delete(url, context) }
        }
        throw error
      }
      state.stored.take(note)
    } else {
      state.held?.stored.take(note)
      state.held?.notes.append(note)
    }
  }

  /// Sends the bytes in memory, as a part if they are enough for one or the last ones.
  func sendBuffer(_ state: inout State, isLast: Bool = false) throws(ServerError) {
    let length = Int64(state.buffer.count)
    let isPart = isLast || length >= store.leastPart(of: state.current.next)
    let sender = try isPart ? partSender(length, &state) : tailSender(length, &state)
    try sender.write(all: state.buffer)
    try end(sender, &state)
    (state.buffer, state.permit) = ([], nil)
  }

  func settle() throws(ServerError) {
    try change { (state) throws(ServerError) in
      do throws(ServerError) {
        if state.sender != nil { throw ServerError(500, "the upload \(id) has fewer bytes than were announced") }
        // A short file without a record is sent when it is published, in one request.
        let isShort = state.current.isEmpty && state.buffer.count <= S3Store.mostInMemory && state.held == nil
        if isShort, store.isUnsaved(id) {
          state.permit?.shrink(to: state.buffer.count)
        } else if !state.buffer.isEmpty {
          try sendBuffer(&state)
        }
        state.isSettled = true
      } catch {
        drop(&state)
        throw error
      }
    }
  }

  /// Call when the upload has got a record: bytes in memory that are settled must be safe from now on.
  func hasBeenSaved(total: Int64?, under fence: Int64) throws(ServerError) {
    try change { (state) throws(ServerError) in
      state.fence = fence
      state.total = total ?? state.total
      if state.isSettled, !state.buffer.isEmpty { try sendBuffer(&state) }
    }
  }

  func retreat() { state.withLock { if !$0.isSettled { drop(&$0) } } }

  func hold() throws(ServerError) {
    try change { (state) throws(ServerError) in
      // Earlier bytes stay, whatever becomes of the provisional ones.
      if !state.buffer.isEmpty { try sendBuffer(&state) }
      state.held = (state.stored, [])
    }
  }

  func keep() throws(ServerError) {
    try change { (state) throws(ServerError) in
      while let note = state.held?.notes.first {
        try store(note, &state)
        state.stored.take(note)
        state.held?.notes.removeFirst()
      }
      state.held = nil
    }
  }

  func drop() {
    state.withLock { state in
      state.held = nil
      drop(&state)
    }
  }

  func discard() {
    let left = state.withLock { state -> (StoredBytes, isKept: Bool)? in
      if state.isDiscarded { return nil }
      state.dropUnstored()
      state.isDiscarded = true
      return (state.stored, state.fence != nil || state.isOutdated)
    }
    if let left { store.discard(id, left.0, isKept: left.isKept) }
  }

  /// Call when the bytes are an object, or another server goes on with them. Nothing is left to discard.
  func hasBeenPassedOn() {
    state.withLock { state in
      state.dropUnstored()
      state.isDiscarded = true
    }
  }
}
