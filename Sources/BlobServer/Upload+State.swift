extension Upload {
  /// The state of an upload that its lock guards.
  struct State {
    var record: UploadRecord
    var offset: Int64
    var isSaved: Bool
    /// When the last byte came. Nanoseconds since 1970.
    var touched = wallClock()
    /// Open from the first byte that a request of ours brought.
    var reception: (any Reception)?
    /// Counts the writers; only the latest may write.
    var writer = 0
    var isWriting = false
    /// The bytes that arrive count only once the writer keeps them: until then `offset` stays behind the reception.
    var isOnProbation = false
    /// The digest that was promised has been compared.
    var isVerified = false
    var phase = Phase.open
    var waiting: [@Sendable (Result<Publication, ServerError>) -> Void] = []

    /// Throws 409 once another writes, and what has become of the upload once nobody does.
    func reception(of writer: Int) throws(ServerError) -> any Reception {
      if case .ended(.failure(let error)) = phase { throw error }
      guard writer == self.writer, let reception else { throw Self.takenOver }
      return reception
    }

    static let takenOver = ServerError(409, "a newer request has taken over the upload")

    var isOpen: Bool { if case .open = phase { true } else { false } }
    /// Nobody can add a byte any more.
    var hasAll: Bool {
      switch phase {
      case .publishing, .ended(.success): true
      case .open, .ended(.failure): false
      }
    }

    mutating func dropProbation() throws(ServerError) {
      guard isOnProbation else { return }
      try reception?.drop()
      isOnProbation = false
    }
  }
  enum Phase {
    case open, publishing
    case ended(Result<Publication, ServerError>)
  }
}
