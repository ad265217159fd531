import Synchronization

/// Limits how much of a resource may be in use at a time.
final class Allowance: Sendable {
  private let most: Int
  private let left: Mutex<Int>

  init(_ most: Int) {
    self.most = most
    left = Mutex(most)
  }

  /// Reserves `amount`, until the returned permit is released; nil if less is available. An amount above the limit
  /// reserves the whole limit, so that it is possible while nothing else is reserved.
  func take(_ amount: Int = 1) -> Permit? {
    let amount = min(amount, most)
    let isTaken = left.withLock { left in
      if left < amount { return false }
      left -= amount
      return true
    }
    return isTaken ? Permit(self, amount) : nil
  }

  final class Permit: Sendable {
    private let allowance: Allowance
    private let amount: Int

    fileprivate init(_ allowance: Allowance, _ amount: Int) { (self.allowance, self.amount) = (allowance, amount) }

    deinit { allowance.left.withLock { $0 += amount } }
  }
}
