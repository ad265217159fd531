import Blobs

/// Searches the largest size that passes: first its magnitude, then among numbers that people choose, such as 10 MiB, and
/// of these the rounder ones first.
struct SizeSearch: Sendable {
  struct Limit: Sendable, Hashable {
    /// The largest size that is known to pass; 0: none.
    var passes: Int64 = 0
    /// The smallest size that is known to be refused.
    var refused: Int64
    var isExact: Bool { refused == passes + 1 }
  }

  var limit: Limit
  /// The last size whose next byte was tried.
  private var triedNext: Int64?

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
    for unit in Self.units {
      if let multiple = Self.multiple(of: unit, low, high) { return multiple }
      if low % unit == 0, triedNext != low {
        triedNext = low
        return low + 1
      }
    }
    return low + (high - low) / 2
  }

  /// 1000, 100, 10 and 1 GiB, MiB and KiB.
  private static let units: [Int64] = [30, 20, 10].flatMap { power in
    [1000, 100, 10, 1].map { $0 << Int64(power) }
  }

  /// The multiple of `unit` between both bounds that is next to their middle; nil: there is none.
  private static func multiple(of unit: Int64, _ low: Int64, _ high: Int64) -> Int64? {
    let first = (low / unit).addingClamped(1).multipliedClamped(by: unit)
    if first >= high { return nil }
    return max(first, (low + (high - low) / 2) / unit * unit)
  }
}
