import Blobs

/// Searches the largest size that passes: first its magnitude, then a number that people choose, such as 10 MiB, and then
/// by bisection.
struct SizeSearch: Sendable {
  struct Limit: Sendable, Hashable {
    /// The largest size that is known to pass; 0: none.
    var passes: Int64 = 0
    /// The smallest size that is known to be refused.
    var refused: Int64
    var isExact: Bool { refused == passes + 1 }
  }

  var limit: Limit
  /// The number that people choose, once it was tried.
  private var round: Int64?
  private var hasTriedNext = false

  init(refused: Int64) { limit = Limit(refused: refused) }

  /// The next size to try; nil: the limit is known to the byte.
  mutating func next() -> Int64? {
    let (low, high) = (limit.passes, limit.refused)
    if high - low <= 1 { return nil }
    if low == 0 { return max(1, high / 1024) }
    if high / low >= 4 {
      // About the geometric mean.
      let shift = (Int64.bitWidth - (high / low).leadingZeroBitCount) / 2
      return min(high - 1, low << Int64(shift))
    }
    if round == nil {
      let chosen = Self.roundest(from: low, below: high) ?? low
      round = chosen
      if chosen > low { return chosen }
    }
    if low == round, !hasTriedNext {
      hasTriedNext = true
      return low + 1
    }
    return low + (high - low) / 2
  }

  /// The multiple of the largest of 1000, 100, 10 and 1 GiB, MiB or KiB in this range; nil: there is none.
  private static func roundest(from low: Int64, below high: Int64) -> Int64? {
    for power: Int64 in [30, 20, 10] {
      for factor: Int64 in [1000, 100, 10, 1] {
        let unit = factor << power
        let multiple = low.addingClamped(unit - 1) / unit * unit
        if multiple < high { return multiple }
      }
    }
    return nil
  }
}
