import Synchronization

/// Memory that several uploads share.
final class MemoryBudget: Sendable {
  /// Gives the memory back when it is released.
  final class Permit: Sendable {
    private let budget: MemoryBudget
    private let bytes: Mutex<Int>
    fileprivate init(_ budget: MemoryBudget, _ bytes: Int) {
      self.budget = budget
      self.bytes = Mutex(bytes)
    }
    deinit { shrink(to: 0) }

    /// Gives back what is not needed.
    func shrink(to least: Int) {
      let freed = bytes.withLock { bytes in
        defer { bytes = min(bytes, least) }
        return max(0, bytes - least)
      }
      budget.free.withLock { $0 += freed }
    }
  }
  private let free: Mutex<Int>

  init(_ bytes: Int) { free = Mutex(bytes) }

  /// nil: not enough is left.
  func take(_ bytes: Int) -> Permit? {
    let isTaken = free.withLock { free in
      if free < bytes { return false }
      free -= bytes
      return true
    }
    return isTaken ? Permit(self, bytes) : nil
  }
}
