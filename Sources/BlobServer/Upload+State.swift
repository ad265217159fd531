extension Upload {
  /// The state of an upload that its lock guards.
  struct State {
    var record: UploadRecord
    var offset: Int64
    var isSaved: Bool
    /// Time of the last received byte, in nanoseconds since 1970.
    var touched = wallClock()
    /// Open since the first byte that a request to this process has sent.
    var reception: (any Reception)?
    /// The number of the current writer; only this one may write.
    var writer = 0
    var isWriting = false
    /// The client that sent the newest bytes; nil: it is not known, or nobody asks for it.
    var sender: Sender?
    /// Arriving bytes are provisional: until the writer accepts them, `offset` does not include them.
    var isOnProbation = false
    /// The expected digest has been verified.
    var isVerified = false
    var phase = Phase.open
    var waiting: [@Sendable (Result<Publication?, ServerError>) -> Void] = []

    /// Throws 409 if a newer writer has taken over, and the final error if the upload has ended with one.
    func reception(of writer: Int) throws(ServerError) -> any Reception {
      if case .ended(.failure(let error)) = phase { throw error }
      guard writer == self.writer, let reception else { throw Self.takenOver }
      return reception
    }

    static let takenOver = ServerError(409, "a newer request has taken over the upload")

    /// Changes the record, and saves it if the upload is saved. Blocks for a small write.
    mutating func change(
      in store: any UploadStore, _ change: (inout UploadRecord) throws(ServerError) -> Void
    ) throws(ServerError) {
      var record = record
      try change(&record)
      if isSaved, record != self.record { try store.save(record) }
      self.record = record
    }

    /// Thrown to a request that would add something to an upload that has ended.
    static let afterEnd = {
      var error = ServerError(409, "the upload has all its bytes")
      error.isAfterEnd = true
      return error
    }()

    var isOpen: Bool { if case .open = phase { true } else { false } }
    /// No byte can be added any more.
    var hasAll: Bool {
      switch phase {
      case .publishing, .ended(.success): true
      case .open, .ended(.failure): false
      }
    }

    /// Drops the bytes of the last writer that were not accepted.
    mutating func dropUnaccepted() throws(ServerError) {
      if isOnProbation {
        try reception?.drop()
        isOnProbation = false
      }
      guard isOpen, let reception else { return }
      reception.retreat()
      offset = reception.safeLength
    }
  }

  /// Reads the upload for its digests. Throws 501 if the store cannot.
  @discardableResult func checkDigests() throws(ServerError) -> any ReceptionDigests {
    try store.required(
      \.receptionDigests,
      "read an upload for its digest: send it without Repr-Digest, or in a PUT that is not resumable")
  }

  enum Phase {
    case open, publishing
    case ended(Result<Publication, ServerError>)
  }
}

// Uploads that several servers share.
extension Upload {
  /// Whether a client that knows the upload's URL can go on with it, at whichever server that shares the uploads.
  var canBeFound: Bool { store.abilities.claims == nil || state.withLock { $0.isSaved } }

  /// Ends the use of the upload by this server: the writer is stopped, and its bytes that are not safe are dropped. Returns
  /// false, without effect, if the upload is being published.
  func letGo() -> Bool {
    state.withLock { state in
      if case .publishing = state.phase { return false }
      guard state.isOpen else { return true }
      try? state.dropUnaccepted()  // the next holder drops provisional bytes, as after a kill
      state.phase = .ended(.failure(.claimIsLost))
      state.writer += 1
      (state.isWriting, state.reception) = (false, nil)
      return true
    }
  }
}
