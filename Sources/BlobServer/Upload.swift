import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// An upload that requests are at work on; between requests it lives in the store alone.
///
/// One writer at a time, the newest: a connection whose client has died may linger for long, and must not keep the
/// client that came back from its upload. Taking over happens under the lock that every chunk is written under, so the
/// offset that is told afterwards stays true.
final class Upload: Sendable {
  let id: UploadID
  private let home: Uploads
  private var store: any UploadStore { home.store }

  private let state: Mutex<State>

  init(
    _ record: UploadRecord, offset: Int64, isSaved: Bool, touched: Int64 = wallClock(),
    _ reception: (any Reception)?, _ home: Uploads
  ) {
    id = record.id
    self.home = home
    state = Mutex(State(record: record, offset: offset, isSaved: isSaved, touched: touched, reception: reception))
  }

  /// An upload that was neither saved nor published, as where its request was refused half-way, leaves nothing behind.
  deinit {
    let left = state.withLock { state -> (any Reception)? in
      if case .open = state.phase, !state.isSaved { state.reception } else { nil }
    }
    left?.discard()
  }

  var record: UploadRecord { state.withLock { $0.record } }
  var offset: Int64 { state.withLock { $0.offset } }
  /// When it is forgotten if nothing more comes. Nanoseconds since 1970.
  var expires: Int64 { state.withLock { $0.touched }.addingClamped(home.expire) }
  /// Every byte is here; of a final upload, in its parts, as long as publishing it has not taken them.
  var isComplete: Bool {
    let (record, offset, isOpen) = state.withLock { ($0.record, $0.offset, $0.isOpen) }
    return record.parts.map { !isOpen || home.areComplete($0) } ?? (offset == record.length)
  }

  /// A request that brings bytes is under way.
  var isWriting: Bool { state.withLock { $0.isWriting } }

  /// Nobody has begun to publish or to end it.
  var isOpen: Bool { state.withLock { if case .open = $0.phase { true } else { false } } }

  /// Ends whoever writes and returns the offset, which now stays until the next writer comes.
  func takeOver() throws(ServerError) -> Int64 {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      try state.dropProbation()
      state.writer += 1
      state.isWriting = false
      return state.offset
    }
  }

  /// Becomes the writer. Throws 409, and leaves an older one alone, when `offset` is not where the upload is.
  /// `onProbation`: until the writer keeps them, its bytes do not count, and are dropped if it ends.
  func write(from offset: Int64, onProbation: Bool = false) throws(ServerError) -> UploadWriter {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      guard case .open = state.phase else { throw ServerError(409, "the upload has all its bytes") }
      if offset != state.offset { throw ServerError(409, "the upload is at byte \(state.offset), not at \(offset)") }
      try state.dropProbation()
      if state.reception == nil { state.reception = try store.reopen(id) }
      if onProbation { try state.reception?.hold() }
      state.isOnProbation = onProbation
      state.writer += 1
      state.isWriting = true
      return UploadWriter(self, state.writer, isOnProbation: onProbation)
    }
  }

  func append(_ piece: BodyPiece, _ writer: Int) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      let reception = try state.reception(of: writer)
      let end = reception.length + Int64(piece.count)
      if let length = state.record.length, end > length {
        var error = ServerError(413, "the upload has \(length) bytes, the request brought at least \(end)")
        error.isPastLength = true
        throw error
      }
      if let limit = home.maxSize, end > limit { throw ServerError(413, "an upload may have \(limit) bytes at most") }
      defer {
        if !state.isOnProbation { state.offset = reception.length }
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
      for digests in promised { try record.promise(digests) }
      if isLast, record.length == nil { record.length = reception.length }
      if state.isSaved, record != state.record { try store.save(record) }
      try reception.keep()
      (state.isOnProbation, state.offset, state.record) = (false, reception.length, record)
      if isAsPromised { state.isVerified = true }
      return true
    }
  }

  func isNewest(_ writer: Int) -> Bool { state.withLock { $0.writer == writer } }

  /// Every byte is here, those on probation with them.
  var hasAllBytes: Bool { state.withLock { $0.record.length != nil && $0.reception?.length == $0.record.length } }

  func drop(_ writer: Int) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in if writer == state.writer { try state.dropProbation() } }
  }

  func takeBack(_ writer: Int, after error: ServerError, isCreation: Bool) -> Bool {
    let ends = state.withLock { state in
      writer == state.writer && error.endsUpload && (isCreation || !state.isOnProbation)
    }
    // Where this fails, the next writer tries again, or another request has ended the upload already.
    if ends { try? terminate(by: writer) } else { try? drop(writer) }
    return !ends
  }

  func stop(_ writer: Int) {
    state.withLock { state in
      guard writer == state.writer else { return }
      state.isWriting = false
      try? state.dropProbation()  // the next writer tries again, and says so if it fails
    }
  }

  /// Takes no byte any more, as a part of a final upload; its length. Throws 409 while some are missing.
  func seal() throws(ServerError) -> Int64 {
    try state.withLock { (state) throws(ServerError) in
      guard state.offset == state.record.length else { throw ServerError(409, "the part \(id) is not complete") }
      try state.dropProbation()
      state.writer += 1
      state.isWriting = false
      state.reception = nil
      state.phase = .publishing
      return state.offset
    }
  }

  /// Tells the length, once. Throws 400 when it contradicts what is known. Blocks for a small write.
  func setLength(_ length: Int64) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      if let known = state.record.length {
        if known != length { throw ServerError(400, "the length was given as \(known) and cannot become \(length)") }
        return
      }
      if length < state.offset { throw ServerError(400, "the upload is at byte \(state.offset), past \(length)") }
      var record = state.record
      record.length = length
      if state.isSaved { try store.save(record) }
      state.record = record
    }
  }

  /// Lets the final upload, if there is one, know that this part is complete.
  func tellFinal() { if isComplete { home.completed(self) } }

  /// Lets other requests of this process find it.
  func register() { home.add(self) }

  /// Makes it outlive this request and the process. Blocks for a small write.
  func save() throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      guard case .open = state.phase else { throw ServerError(409, "the upload is finished") }
      if !state.isSaved { try home.saveNew(state.record) }
      state.isSaved = true
    }
    register()
  }

  /// Publishes what is complete, on a worker, unless that has been done. `then` hears how it ended.
  func publish(then: @escaping @Sendable (Result<Publication, ServerError>) -> Void) {
    let ended: Result<Publication, ServerError>? = state.withLock { state in
      switch state.phase {
      case .ended(let result): return result
      case .publishing: state.waiting.append(then)
      case .open:
        state.phase = .publishing
        state.waiting.append(then)
        home.workers.submit { self.publishNow() }
      }
      return nil
    }
    if let ended { then(ended) }
  }

  private func publishNow() {
    let (record, isSaved, held) = state.withLock { ($0.record, $0.isSaved, $0.reception) }
    let result: Result<Publication, ServerError>
    do throws(ServerError) {
      let reception: any Reception
      if let held {
        reception = held
      } else if record.parts != nil {
        let length: Int64
        (reception, length) = try home.join(record)
        state.withLock { ($0.record.length, $0.offset) = (length, length) }
      } else {
        reception = try store.reopen(id)
      }
      try verify(reception, isSaved: isSaved)
      result = .success(try store.publish(reception, self.record, isSaved: isSaved))
    } catch {
      result = .failure(error)
    }
    home.ended(self.record, result)
    let waiting = state.withLock { state in
      if case .failure(let error) = result, !error.endsUpload {
        state.phase = .open  // the file system's fault: the bytes are still there, asking again tries again
      } else {
        state.phase = .ended(result)
        state.reception = nil
      }
      defer { state.waiting = [] }
      return state.waiting
    }
    for then in waiting { then(result) }
  }

  /// Saves the digests of the whole that a request promises, beside those that were promised before. Throws 400 where the two
  /// contradict each other. Blocks for a small write.
  func promise(_ digests: [Digest.Algorithm: [UInt8]]) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      guard case .open = state.phase else { throw ServerError(409, "the upload has all its bytes") }
      var record = state.record
      try record.promise(digests)
      if state.isSaved, record != state.record { try store.save(record) }
      state.record = record
    }
  }

  /// Reads the whole again where it did not come in one request. After a mismatch nothing of it is left.
  private func verify(_ reception: any Reception, isSaved: Bool) throws(ServerError) {
    guard let text = state.withLock({ $0.isVerified ? nil : $0.record.digest }), let wanted = DigestField.values(text)
    else { return }
    let found = try store.digests(of: reception, Array(wanted.keys))
    guard let wrong = wanted.keys.first(where: { found[$0] != wanted[$0] }) else {
      return state.withLock { $0.isVerified = true }
    }
    if isSaved { store.delete(id) } else { reception.discard() }
    throw BodyDigests.mismatch(.representation, wrong)
  }

  /// Nobody can go on with it from now on, nor find it: it was sent more bytes than it has. They go with `deleteInvalid`.
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

  /// Deletes what `invalidate` has left; false where it is not invalid. Blocks.
  @discardableResult func deleteInvalid() -> Bool {
    let (isInvalid, held) = state.withLock { state -> (Bool, (any Reception)?) in
      guard case .ended(.failure(let error)) = state.phase, error.isPastLength else { return (false, nil) }
      defer { state.reception = nil }
      return (true, state.reception)
    }
    if !isInvalid { return false }
    store.delete(id)
    held?.discard()
    home.dropInvalid(id)
    return true
  }

  /// Ends it and deletes its bytes. Throws 409 when it is published, or about to be, and when another than `writer` has taken
  /// over. Blocks.
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
    home.forget(id)
  }
}
