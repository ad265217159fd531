import Synchronization

/// Whether the bucket's server knows `If-Match` for requests that make an object. Some answer 501 to it. Then the version of
/// what is replaced is only asked for before.
final class WriteConditions: Sendable {
  private let isRefused = Atomic(false)

  var areKnown: Bool { !isRefused.load(ordering: .relaxed) }

  func noteUnknown() { isRefused.store(true, ordering: .relaxed) }
}
