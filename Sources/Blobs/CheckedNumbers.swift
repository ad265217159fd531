import Synchronization

// Arithmetic on numbers that come from servers, files, databases, clocks and the command line. Plain `+` and
// `Int64(_:)` trap when such a number is too large.

extension Int64 {
  /// Parses a count as HTTP, XML and JSON write it: ASCII digits only, below 2^63; nil for anything else. `Int64(_:)`
  /// would also accept `+5` and `-5`.
  @inlinable
  package init?(digits text: some StringProtocol) { self.init(digits: text.utf8) }

  /// Parses bytes as `init(digits:)` parses text.
  @inlinable
  package init?(digits bytes: some Sequence<UInt8>) {
    var (number, isEmpty) = (Int64(0), true)
    for byte in bytes {
      guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
      let (tens, tooMany) = number.multipliedReportingOverflow(by: 10)
      let (sum, tooLarge) = tens.addingReportingOverflow(Int64(byte) - 48)
      if tooMany || tooLarge { return nil }
      (number, isEmpty) = (sum, false)
    }
    if isEmpty { return nil }
    self = number
  }

  /// The Int64 nearest to `value`; 0 for NaN.
  package init(clamped value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
  }

  /// The sum, clamped to the range of Int64.
  package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }

  /// The difference, clamped to the range of Int64.
  package func subtractingClamped(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }

  /// The product, clamped to the range of Int64.
  package func multipliedClamped(by other: Int64) -> Int64 {
    let (product, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
  }
}

extension Sequence<Int64> {
  /// The sum of all elements, clamped at each addition.
  package var clampedSum: Int64 { reduce(0) { $0.addingClamped($1) } }
}

extension Atomic where Value == Int64 {
  /// Adds as `addingClamped` does; `add` would trap on overflow.
  package func addClamped(_ other: Int64) {
    var before = load(ordering: .relaxed)
    while true {
      let (done, now) = weakCompareExchange(
        expected: before, desired: before.addingClamped(other), ordering: .relaxed)
      if done { return }
      before = now
    }
  }
}
