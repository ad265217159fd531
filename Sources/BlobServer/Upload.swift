import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// An upload that requests currently use; between requests it exists only in the store.
///
/// Only the newest writer may write, so that a dead connection does not block the client when it reconnects. Taking
/// over uses the same lock as every write, so the offset reported afterwards does not change.
final class Upload: Sendable {
  let id: UploadID
  let home: Uploads
  var store: any UploadStore { home.store }
  let state: Mutex<State>

  init(
    _ record: UploadRecord, offset: Int64, isSaved: Bool, touched: Int64 = wallClock(), by sender: Sender? = nil,
    _ reception: (any Reception)?, _ home: Uploads
  ) {
    (id, self.home) = (record.id, home)
    state = Mutex(
      State(record: record, offset: offset, isSaved: isSaved, touched: touched, reception: reception, sender: sender))
  }

  /// Discards an upload that was neither saved nor published, as when its request was refused midway.
  deinit {
    let left = state.withLock { state -> (any Reception)? in
      if case .open = state.phase, !state.isSaved { state.reception } else { nil }
    }
    if let left { home.counters.failed(record, received: left.length) }
    left?.discard()
  }

  var record: UploadRecord { state.withLock { $0.record } }
  var offset: Int64 { state.withLock { $0.offset } }
  /// The expiry time if no more bytes arrive, in nanoseconds since 1970.
  var expires: Int64 {
    state.withLock { $0.touched.addingClamped($0.record.lifetime(at: $0.offset, home.expire)) }
  }
  /// Whether the upload can be published: all bytes have arrived, and the client has said that they are all. Before a
  /// final upload is published: whether its parts are complete.
  var isComplete: Bool {
    let (record, offset, isOpen) = state.withLock { ($0.record, $0.offset, $0.isOpen) }
    return record.parts.map { !isOpen || home.areComplete($0) } ?? record.isComplete(at: offset)
  }

  /// Whether a request is currently sending bytes.
  var isWriting: Bool { state.withLock { $0.isWriting } }
  /// Whether nobody has begun to publish or end the upload.
  var isOpen: Bool { state.withLock { if case .open = $0.phase { true } else { false } } }

  /// Stops the current writer and returns the offset, which does not change until the next writer begins.
  func takeOver() throws(ServerError) -> Int64 {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      try state.dropUnaccepted()
      state.writer += 1
      state.isWriting = false
      return state.offset
    }
  }

  /// Registers a new writer. Throws 409, without stopping the current one, if `offset` is not the upload's offset.
  /// `count`: how many bytes it brings; nil: not known. `onProbation`: its bytes are provisional, and are dropped if the
  /// writer ends before accepting them. `isLast`: whether the client says that the upload ends with this request; nil: its
  /// protocol does not say so. The statement is saved before the bytes arrive, since the upload may be published as soon
  /// as they have; for provisional bytes, when they are accepted. Blocks for a small write if the statement is new.
  func write(
    from offset: Int64, bringing count: Int64?, by sender: Sender?, onProbation: Bool = false, isLast: Bool? = nil
  ) throws(ServerError) -> UploadWriter {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      guard case .open = state.phase else { throw State.afterEnd }
      if offset != state.offset { throw ServerError(409, "the upload is at byte \(state.offset), not at \(offset)") }
      try state.dropUnaccepted()
      if state.reception == nil {
        let reception = try store.reopen(id)
        // Another server has gone on with the upload since this one has read its record.
        if reception.length != offset { throw ServerError.claimIsLost }
        state.reception = reception
      }
      if let isLast { try state.change(in: store) { (record) in record.awaitsEnd = !isLast || onProbation } }
      if onProbation { try state.reception?.hold() }
      state.reception?.expect(count)
      (state.isOnProbation, state.isWriting, state.sender) = (onProbation, true, sender)
      state.writer += 1
      let meter = home.counters.active.begin(state.record, from: offset, by: sender)
      return UploadWriter(self, state.writer, isOnProbation: onProbation, meter)
    }
  }

  /// If the store says that earlier bytes are gone (410), the upload ends, so that no request finds it any more. This call
  /// blocks then.
  func append(_ piece: BodyPiece, _ writer: Int) throws(ServerError) {
    do throws(ServerError) { try take(piece, writer) } catch {
      // If this fails, another request has already ended the upload.
      if error.status == 410 { try? terminate(by: writer) }
      throw error
    }
  }

  private func take(_ piece: BodyPiece, _ writer: Int) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      let reception = try state.reception(of: writer)
      let end = reception.length + Int64(piece.count)
      if let length = state.record.length, end > length {
        var error = ServerError(413, "the upload has \(length) bytes, the request brought at least \(end)")
        error.isPastLength = true
        throw error
      }
      if let limit = home.maxSize, end > limit { throw ServerError.tooLarge(limit) }
      defer {
        if !state.isOnProbation { state.offset = reception.safeLength }
        state.touched = wallClock()
      }
      try reception.append(piece)
    }
  }

  func end(
    _ writer: Int, wasOnProbation: Bool, isLast: Bool, _ promised: [[Digest.Algorithm: [UInt8]]], isAsPromised: Bool
  ) throws(ServerError) -> Bool {
    try state.withLock { (state) throws(ServerError) in
      if writer != state.writer, state.hasAll, !wasOnProbation { return false }
      let reception = try state.reception(of: writer)
      var record = state.record
      if !promised.isEmpty, !isAsPromised { try checkDigests() }
      for digests in promised { try record.promise(digests) }
      try reception.settle()
      if isLast { (record.length, record.awaitsEnd) = (record.length ?? reception.length, false) }
      if state.isSaved, record != state.record { try store.save(record) }
      try reception.keep()
      (state.isOnProbation, state.offset, state.record) = (false, reception.length, record)
      if isAsPromised { state.isVerified = true }
      return true
    }
  }

  func isNewest(_ writer: Int) -> Bool { state.withLock { $0.writer == writer } }
  /// Whether all bytes have arrived, including provisional ones.
  var hasAllBytes: Bool { state.withLock { $0.record.length != nil && $0.reception?.length == $0.record.length } }

  func drop(_ writer: Int) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in if writer == state.writer { try state.dropUnaccepted() } }
  }

  func takeBack(_ writer: Int, after error: ServerError, isCreation: Bool) -> Bool {
    let ends = state.withLock { state in
      // With 410, the bytes before these are gone too.
      writer == state.writer && error.endsUpload && (isCreation || !state.isOnProbation || error.status == 410)
    }
    // If this fails, the next writer tries again, or another request has already ended the upload.
    if ends { try? terminate(by: writer) } else { try? drop(writer) }
    return !ends
  }

  func stop(_ writer: Int) {
    state.withLock { state in
      guard writer == state.writer else { return }
      state.isWriting = false
      try? state.dropUnaccepted()  // the next writer tries again and reports a failure
    }
  }

  /// Ends writing to a part that is being joined, and returns its length. Throws 409 if bytes are missing.
  func seal() throws(ServerError) -> Int64 {
    try state.withLock { (state) throws(ServerError) in
      guard state.offset == state.record.length else { throw ServerError(409, "the part \(id) is not complete") }
      try state.dropUnaccepted()
      state.writer += 1
      state.isWriting = false
      state.reception = nil
      state.phase = .publishing
      return state.offset
    }
  }

  /// Sets the length. It can be set once; throws 400 if it contradicts what is known. Blocks for a small write.
  func setLength(_ length: Int64) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      if let known = state.record.length {
        if known != length { throw ServerError(400, "the length was given as \(known) and cannot become \(length)") }
        return
      }
      if length < state.offset { throw ServerError(400, "the upload is at byte \(state.offset), past \(length)") }
      try state.change(in: store) { (record) in record.length = length }
    }
  }

  /// Informs the final upload, if there is one, that this part is complete.
  func tellFinal() { if isComplete { home.completed(self) } }

  /// Makes the upload available to other requests of this process.
  func register() { home.add(self) }
  /// Saves the upload so that it survives this request and the process. Blocks for a small write.
  func save() throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      guard case .open = state.phase else { throw ServerError(409, "the upload is finished") }
      if !state.isSaved { try home.saveNew(state.record) }
      state.isSaved = true
    }
    register()
  }

  /// Ends an upload that was sent too many bytes. Nobody can continue or find it; `deleteInvalid` deletes it.
  func invalidate() {
    state.withLock { state in
      guard case .open = state.phase else { return }
      var error = ServerError(404, "the upload was sent more bytes than it has, which has ended it")
      error.isPastLength = true
      state.phase = .ended(.failure(error))
      state.writer += 1
      state.isWriting = false
    }
  }

  /// Deletes the bytes of an upload that was invalidated; returns false for other uploads. This call blocks.
  @discardableResult func deleteInvalid() -> Bool {
    let (isInvalid, held) = state.withLock { state -> (Bool, (any Reception)?) in
      guard case .ended(.failure(let error)) = state.phase, error.isPastLength else { return (false, nil) }
      defer { state.reception = nil }
      return (true, state.reception)
    }
    if !isInvalid { return false }
    store.delete(id)
    held?.discard()
    home.dropInvalid(record)
    return true
  }

  /// Ends the upload and deletes its bytes. Throws 409 if publishing began, or `writer` is not the newest. This call
  /// blocks.
  func terminate(by writer: Int? = nil) throws(ServerError) {
    let held = try state.withLock { (state) throws(ServerError) in
      if let writer, writer != state.writer { throw State.takenOver }
      if case .ended(.failure(let error)) = state.phase { throw error }
      guard case .open = state.phase else { throw ServerError(409, "the upload is finished") }
      state.phase = .ended(.failure(ServerError(410, "the upload was terminated")))
      state.writer += 1
      state.isWriting = false
      defer { state.reception = nil }
      return state.reception
    }
    store.delete(id)
    held?.discard()
    home.terminated(record, received: held?.length ?? offset)
  }
}
