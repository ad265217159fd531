import BlobCrypto
import BlobHTTP
import Blobs

// How an upload with all its bytes gets its name.
extension Upload {
  /// Publishes a complete upload on a worker, unless that has been started. `then` gets the result; nil: the upload has
  /// to wait for the other members of its group, and can be published again at any time.
  func publish(then: @escaping @Sendable (Result<Publication?, ServerError>) -> Void) {
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
    if let ended { then(ended.map { $0 }) }
  }

  private func publishNow() {
    do throws(ServerError) {
      guard record.group != nil, let groups = store.abilities.groups else {
        let reception = try completeReception()
        try verify(reception)
        let isSaved = state.withLock { $0.isSaved }
        return endPublication(.success(try store.publish(reception, record, isSaved: isSaved)))
      }
      if !home.groups.contains(id) {
        let reception = try completeReception()
        try verify(reception)
        try saveToWait()
        // A name that is taken is refused at once, and not after the last member has arrived.
        try groups.prepare(reception, record)
      }
      home.groups.arrived(self)
    } catch {
      endPublication(.failure(error))
    }
  }

  /// The bytes of a complete upload. Blocks while those of parts are joined.
  func completeReception() throws(ServerError) -> any Reception {
    let (record, held) = state.withLock { ($0.record, $0.reception) }
    if let held { return held }
    if record.parts == nil { return try store.reopen(id) }
    let (reception, length) = try home.join(record)
    state.withLock { ($0.record.length, $0.offset) = (length, length) }
    return reception
  }

  /// Saves an upload that came in one request, since it may wait for long.
  private func saveToWait() throws(ServerError) {
    let isSaved = state.withLock { $0.isSaved }
    if isSaved { return }
    try home.saveNew(record)
    state.withLock { $0.isSaved = true }
    register()
  }

  /// Begins to publish the upload together with the other members of its group. Returns false if it is being published just
  /// now, or has ended. No request can write to it any more, since it is complete.
  func beginPublication() -> Bool {
    state.withLock { state in
      guard state.isOpen else { return false }
      state.phase = .publishing
      return true
    }
  }

  /// Ends an attempt to publish the upload. nil: it has to wait for the other members of its group.
  func endPublication(_ result: Result<Publication?, ServerError>) {
    let final: Result<Publication, ServerError>?
    switch result {
    case .success(let publication?): final = .success(publication)
    case .failure(let error) where error.endsUpload: final = .failure(error)
    // After an error of the file system the bytes still exist, and the next request tries again.
    case .success(nil), .failure: final = nil
    }
    if let final { home.ended(record, final, by: state.withLock { $0.sender }) }
    let waiting = state.withLock { state in
      if let final { (state.phase, state.reception) = (.ended(final), nil) } else { state.phase = .open }
      defer { state.waiting = [] }
      return state.waiting
    }
    for then in waiting { then(result) }
  }

  /// Saves further digests of the whole file. Throws 400 if they contradict earlier ones. Blocks for a small write.
  func promise(_ digests: [Digest.Algorithm: [UInt8]]) throws(ServerError) {
    try checkDigests()
    try changeRecord { (record) throws(ServerError) in try record.promise(digests) }
  }

  /// Puts the upload into another group. Blocks for a small write.
  func join(_ group: UploadGroup) throws(ServerError) {
    try changeRecord { (record) throws(ServerError) in record.group = group }
    home.groups.forget(id)
  }

  private func changeRecord(
    _ change: (inout UploadRecord) throws(ServerError) -> Void
  ) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      if case .ended(.failure(let error)) = state.phase { throw error }
      guard case .open = state.phase else { throw State.afterEnd }
      try state.change(in: store, change)
    }
  }

  /// Verifies the whole file's digest by reading it, unless it came in one request. A mismatch deletes the upload.
  private func verify(_ reception: any Reception) throws(ServerError) {
    guard let text = state.withLock({ $0.isVerified ? nil : $0.record.digest }), let wanted = DigestField.values(text)
    else { return }
    let found = try checkDigests().digests(of: reception, Array(wanted.keys))
    guard let wrong = wanted.keys.first(where: { found[$0] != wanted[$0] }) else {
      return state.withLock { $0.isVerified = true }
    }
    if state.withLock({ $0.isSaved }) { store.delete(id) } else { reception.discard() }
    throw BodyDigests.mismatch(.representation, wrong)
  }

  /// Runs `work`, which writes to the upload. If the upload is being published meanwhile, for example because the server
  /// has just started, the request waits for that, and `again` processes it as a request for a finished upload. `failed`
  /// is the response if the upload could not be published.
  func unlessPublished(
    _ work: () throws(ServerError) -> Plan, again: @escaping @Sendable () throws(ServerError) -> Plan,
    failed: @escaping @Sendable (ServerError) -> Reply
  ) throws(ServerError) -> Plan {
    do throws(ServerError) {
      return try work()
    } catch {
      // A part is not published by itself.
      if !error.isAfterEnd || record.isPart { throw error }
      return .later { [self] decided in
        publish { result in
          do throws(ServerError) {
            _ = try result.get()
          } catch {
            return decided(.reply(failed(error)))
          }
          do throws(ServerError) {
            decided(try again())
          } catch {
            decided(.refuse(error))
          }
        }
      }
    }
  }
}
