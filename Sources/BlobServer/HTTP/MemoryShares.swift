import Synchronization

/// Divides memory among all who use it at the same time: the more there are, the less has each of them.
package final class MemoryShares: Sendable {
  /// The share of one user, until it is released.
  package final class Share: Sendable {
    private let shares: MemoryShares

    fileprivate init(_ shares: MemoryShares) {
      self.shares = shares
      shares.count.add(1, ordering: .relaxed)
    }
    deinit { shares.count.subtract(1, ordering: .relaxed) }

    /// In bytes, for the number of users that there are now.
    package var size: Int {
      let (total, bounds) = (shares.total, shares.bounds)
      return min(max(total / max(1, shares.count.load(ordering: .relaxed)), bounds.lowerBound), bounds.upperBound)
    }
  }
  private let total: Int
  private let bounds: ClosedRange<Int>
  private let count = Atomic(0)

  /// Sizes are in bytes. Each share is within `bounds`, also if all of them then exceed `total`.
  package init(total: Int, within bounds: ClosedRange<Int>) { (self.total, self.bounds) = (total, bounds) }

  package func take() -> Share { Share(self) }
}
