import BlobHTTP
import Synchronization

/// Whether a destination was ever reached, has responded, has accepted a request and has stored a file.
struct HostContact: ~Copyable, Sendable {
  private let reached = Atomic(false)
  private let answered = Atomic(false)
  private let responseCount = Atomic(0)
  private let accepted = Atomic(false)
  private let stored = Atomic(false)

  /// The destination exists: a connection to it was made, or it has responded.
  var isReal: Bool { reached.load(ordering: .relaxed) || hasAnswered }
  var hasAnswered: Bool { answered.load(ordering: .relaxed) }
  /// The server has responded to a request with success. The request may have stored no bytes, for example if it
  /// created an upload.
  var hasAccepted: Bool { accepted.load(ordering: .relaxed) }
  /// The server has at least one whole file, which this run has sent or has found there.
  var hasStored: Bool { stored.load(ordering: .relaxed) }
  /// The number of responses to all requests so far.
  var responses: Int { responseCount.load(ordering: .relaxed) }

  func noteReached() { Self.set(reached) }
  func noteAnswer() { Self.set(answered) }
  func noteStored() { Self.set(stored) }

  func note(_ response: HTTPResponse) {
    noteAnswer()
    responseCount.add(1, ordering: .relaxed)
    if response.isSuccess { Self.set(accepted) }
  }

  /// Writes only the first time, because many threads read the value.
  private static func set(_ flag: borrowing Atomic<Bool>) {
    if !flag.load(ordering: .relaxed) { flag.store(true, ordering: .relaxed) }
  }
}
