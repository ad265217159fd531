import Blobs

/// Parses and formats sizes, rates and durations.
///
/// `K M G T P` and `KiB MiB …` are powers of 1024, `kB KB MB GB …` powers of 1000, as in GNU's tools: `8M` is 8·2^20
/// bytes.
enum Quantity {
  /// Parses bytes from `512`, `8M`, `512KiB`, `1.5G`, `10MB`; nil if the text is invalid or the number exceeds Int64.
  static func size(_ text: String) -> Int64? {
    let digits = text.prefix { $0.isASCIIDigit || $0 == "." }
    guard let unit = unit(text.dropFirst(digits.count)) else { return nil }
    return scaled(digits, by: unit)
  }

  /// Parses bytes per second from `20M`, `50MB/s`, or `20Mbit` and `20Mbit/s`, which are bits; nil if the text is invalid
  /// or the rate is less than a byte.
  static func rate(_ text: String) -> Int64? {
    let amount = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
    guard amount.hasSuffix("bit") else { return size(amount).flatMap { $0 == 0 ? nil : $0 } }
    // A Mbit is 10^6 bits, as links are measured.
    return size(amount.dropLast(3) + "B").flatMap { $0 < 8 ? nil : $0 / 8 }
  }

  /// Parses `30s`, `5m`, `1h30m`, `2d`, `250ms`; a bare number means seconds.
  static func duration(_ text: String) -> Duration? {
    var rest = text[...]
    var total: Int64 = 0
    if rest.isEmpty { return nil }
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCIIDigit || $0 == "." }
      rest = rest.dropFirst(digits.count)
      let name = rest.prefix { !$0.isASCIIDigit && $0 != "." }
      rest = rest.dropFirst(name.count)
      let milliseconds: Int64
      switch name {
      case "ms": milliseconds = 1
      case "s": milliseconds = 1000
      case "" where digits.count == text.count: milliseconds = 1000
      case "m", "min": milliseconds = 60_000
      case "h": milliseconds = 3_600_000
      case "d": milliseconds = 86_400_000
      default: return nil
      }
      guard let part = scaled(digits, by: milliseconds) else { return nil }
      let (sum, isTooLong) = total.addingReportingOverflow(part)
      if isTooLong { return nil }
      total = sum
    }
    return .milliseconds(total)
  }

  /// Like `duration`; nil also for less than a second, in which `serve` could receive nothing.
  static func secondOrMore(_ text: String) -> Duration? { duration(text).flatMap { $0 < .seconds(1) ? nil : $0 } }

  private static func unit(_ name: Substring) -> Int64? {
    let letters = Array("KMGTP")
    guard let first = name.first else { return 1 }
    if name == "B" { return 1 }
    guard let power = letters.firstIndex(of: first == "k" ? "K" : first) else { return nil }
    switch name.dropFirst() {
    case "", "i", "iB": return 1 << (10 * Int64(power + 1))
    case "B": return (0...power).reduce(1) { product, _ in product * 1000 }
    default: return nil
    }
  }

  /// `digits`, with at most one decimal point, times `unit`, rounded down.
  private static func scaled(_ digits: Substring, by unit: Int64) -> Int64? {
    let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, let whole = Int64(parts[0]) else { return nil }
    let (product, isTooLarge) = whole.multipliedReportingOverflow(by: unit)
    if isTooLarge { return nil }
    guard parts.count == 2 else { return product }
    guard let fraction = Double("0.\(parts[1])"), !parts[1].isEmpty else { return nil }
    let (sum, isBeyond) = product.addingReportingOverflow(Int64(fraction * Double(unit)))
    return isBeyond ? nil : sum
  }

  /// Formats bytes as `0 B`, `999 B`, `1.50 KiB`, `13.7 MiB`, `1020 GiB`: with three digits from 1 KiB on.
  static func text(bytes: Int64) -> String {
    if bytes < 1024 { return "\(bytes) B" }
    var value = Double(bytes)
    var units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][...]
    var unit = "B"
    while value >= 1023.5, let next = units.popFirst() {
      value /= 1024
      unit = next
    }
    return "\(threeDigits(value)) \(unit)"
  }

  static func text(bytesPerSecond: Double) -> String {
    text(bytes: bytesPerSecond.isFinite ? Int64(clamped: bytesPerSecond) : 0) + "/s"
  }

  /// Formats a duration as `0.42 s`, `12.3 s`, `3:25`, `1:02:33`.
  static func text(_ duration: Duration) -> String { text(seconds: seconds(duration)) }

  /// Takes a number of seconds, because a `Duration` cannot represent every number.
  static func text(seconds: Double) -> String {
    if seconds < 59.95 { return "\(threeDigits(max(0, seconds))) s" }
    let whole = Int64(clamped: seconds.rounded())
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
    return hours == 0 ? "\(minutes):\(twoDigits(rest))" : "\(hours):\(twoDigits(minutes)):\(twoDigits(rest))"
  }

  /// Formats a duration in whole seconds, rounded up: `1 s`, `12 s`, `3:25`.
  static func text(whole duration: Duration) -> String {
    let whole = seconds(duration).rounded(.up)
    return whole < 60 ? "\(Int64(clamped: max(0, whole))) s" : text(seconds: whole)
  }

  /// Formats an age in one unit: `just now`, `5 min ago`, `3 h ago`, `12 days ago`. A time in the future, after the
  /// clock was set back, counts as now.
  static func age(seconds: Int64) -> String {
    switch seconds {
    case ..<60: "just now"
    case ..<3600: "\(seconds / 60) min ago"
    case ..<172_800: "\(seconds / 3600) h ago"
    default: "\(grouped(seconds / 86_400)) days ago"
    }
  }

  static func seconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return Double(seconds) + Double(attoseconds) / 1e18
  }

  /// Formats 1234567 as `1,234,567`.
  static func grouped(_ number: some BinaryInteger) -> String {
    var text = ""
    for (index, digit) in String(number).reversed().enumerated() {
      if index > 0 && index % 3 == 0 && digit != "-" { text.append(",") }
      text.append(digit)
    }
    return String(text.reversed())
  }

  /// Formats "1 file", "2 files".
  static func plural(_ number: Int, _ noun: String) -> String {
    "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
  }

  private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  /// Formats `value`, which is not negative, with as many decimals as make three digits.
  static func threeDigits(_ value: Double) -> String {
    let decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
    return fixed(value, decimals: decimals)
  }

  static func fixed(_ value: Double, decimals: Int) -> String {
    let factor = (0..<decimals).reduce(1.0) { product, _ in product * 10 }
    let scaled = Int64(clamped: (value * factor).rounded())
    if decimals == 0 { return "\(scaled)" }
    let fraction = String(scaled % Int64(factor))
    let zeros = String(repeating: "0", count: decimals - fraction.count)
    return "\(scaled / Int64(factor)).\(zeros)\(fraction)"
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
