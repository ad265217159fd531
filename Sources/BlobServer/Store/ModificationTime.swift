import Platform

/// The modification time of a file as its client sends it: seconds since 1970 with an optional fraction, as in
/// `1700000000.25`.
package struct ModificationTime: Sendable, Equatable {
  /// Whole seconds since 1970, rounded down.
  package let seconds: Int64
  package let nanoseconds: Int64

  /// The years 1 to 9999.
  private static let bounds: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

  /// Parses a decimal number with at most nine fractional digits; nil for anything else and for values out of bounds.
  package init?(_ text: some Sequence<UInt8>) {
    var rest = Array(text.prefix(64))[...]
    let isNegative = rest.first == UInt8(ascii: "-")
    if isNegative { rest.removeFirst() }
    let whole = rest.prefix { $0 != UInt8(ascii: ".") }
    var fraction = rest.dropFirst(whole.count)
    if fraction.popFirst() != nil, !(1...9).contains(fraction.count) { return nil }
    guard var seconds = Self.number(whole), var nanoseconds = fraction.isEmpty ? 0 : Self.number(fraction) else {
      return nil
    }
    for _ in fraction.count..<9 { nanoseconds *= 10 }
    if isNegative {
      seconds = -seconds
      if nanoseconds > 0 { (seconds, nanoseconds) = (seconds - 1, 1_000_000_000 - nanoseconds) }
    }
    guard Self.bounds.contains(seconds) else { return nil }
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  /// nil if there are no digits or other characters, or the value is out of bounds.
  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty, digits.allSatisfy(isDigit) else { return nil }
    var number: Int64 = 0
    for digit in digits {
      number = number * 10 + Int64(digit - UInt8(ascii: "0"))
      if number > bounds.upperBound + 1 { return nil }
    }
    return number
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  /// In nanoseconds since 1970; nil: too far from it for 64 bits.
  package var sinceEpoch: Int64? {
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isTooFar) = whole.addingReportingOverflow(nanoseconds)
    return overflow || isTooFar ? nil : sum
  }

  /// The time in the format that `init` parses.
  var text: String {
    let isNegative = seconds < 0
    let whole = isNegative && nanoseconds > 0 ? seconds + 1 : seconds
    let fraction = isNegative && nanoseconds > 0 ? 1_000_000_000 - nanoseconds : nanoseconds
    let digits = String(fraction)
    let zeros = String(repeating: "0", count: 9 - digits.utf8.count)
    return (isNegative ? "-" : "") + "\(whole.magnitude).\(zeros)\(digits)"
  }

  func isTime(of status: stat) -> Bool {
    status.modificationTime.tv_sec == time_t(seconds) && status.modificationTime.tv_nsec == Int(nanoseconds)
  }

  /// Whether a file has this time within the precision of its file system: some store whole or even seconds only. File
  /// systems that cannot store a late time may use the latest one they support instead, which is not near.
  func isNearTime(of status: stat) -> Bool { abs(Int64(status.modificationTime.tv_sec) - seconds) <= 2 }

  /// Sets this modification time on an open file; returns false if the file system refuses it.
  func apply(to file: Descriptor) -> Bool {
    var time = timespec()
    time.tv_sec = time_t(seconds)
    time.tv_nsec = Int(nanoseconds)
    return futimens(file.number, [time, time]) == 0
  }
}
