import Synchronization

/// How much of something may be in use at a time.
final class Allowance: Sendable {
  private let most: Int
  private let left: Mutex<Int>

  init(_ most: Int) {
    self.most = most
    left = Mutex(most)
  }

  /// Takes `amount`, which is given back when nothing refers to the permit any more; nil where less is left. More than there
  /// ever is counts as all of it, so that it is possible while nothing else is taken.
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
