import Synchronization

/// How many of something may be under way at a time.
final class Allowance: Sendable {
  private let left: Mutex<Int>

  init(_ count: Int) { left = Mutex(count) }

  /// One of them, which is given back when nothing refers to it any more; nil where none is left.
  func take() -> Permit? {
    let isTaken = left.withLock { left in
      if left == 0 { return false }
      left -= 1
      return true
    }
    return isTaken ? Permit(self) : nil
  }

  final class Permit: Sendable {
    private let allowance: Allowance
    fileprivate init(_ allowance: Allowance) { self.allowance = allowance }
    deinit { allowance.left.withLock { $0 += 1 } }
  }
}
