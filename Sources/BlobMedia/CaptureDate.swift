import Blobs
import Platform

/// When a picture was taken, in local time at the place of capture, because cameras do not record time zones.
public struct CaptureDate: Sendable, Hashable, CustomStringConvertible {
  /// The year, for example 2026.
  public var year: Int
  /// The month, from 1 to 12.
  public var month: Int
  /// The day of the month, from 1 to 31.
  public var day: Int
  /// The hour, from 0 to 23.
  public var hour: Int
  /// The minute, from 0 to 59.
  public var minute: Int
  /// The second, from 0 to 59, or 60 for a leap second.
  public var second: Int

  /// Creates a date from its parts, in the order year, month, day, hour, minute, second.
  public init(_ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

  /// Parses the EXIF form `2024:01:02 03:04:05`. nil if the text is not a date: a camera whose clock was never set
  /// writes zeros or spaces.
  public init?(exif text: some Collection<UInt8>) {
    let bytes = Array(text.prefix(19))
    guard bytes.count == 19 else { return nil }
    func number(_ start: Int, _ count: Int) -> Int? {
      bytes[start..<(start + count)].reduce(0 as Int?) { sum, byte in
        sum.flatMap { (0x30...0x39).contains(byte) ? $0 * 10 + Int(byte) - 0x30 : nil }
      }
    }
    guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
      let minute = number(14, 2), let second = number(17, 2)
    else { return nil }
    self.init(checked: year, month, day, hour, minute, second)
  }

  /// nil if the numbers are not a valid date.
  init?(checked year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int, _ second: Int) {
    guard (1800...9999).contains(year), (1...12).contains(month), (1...31).contains(day), (0..<24).contains(hour),
      (0..<60).contains(minute), (0...60).contains(second)
    else { return nil }
    self.init(year, month, day, hour, minute, second)
  }

  public var description: String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(year)-\(two(month))-\(two(day)) \(two(hour)):\(two(minute)):\(two(second))"
  }
}

extension CaptureDate {
  /// A point in time, in this machine's time zone.
  public init(secondsSince1970: Int64) {
    // A file system may report any year. A year has four digits, and modification times are sent from 1677-09-21 on.
    var seconds = time_t(min(max(secondsSince1970, Int64.min / 1_000_000_000), 253_402_000_000))
    var parts = tm()
    localtime_r(&seconds, &parts)
    self.init(parts)
  }

  /// From a camera's count of seconds since 1970 by its local clock, without a time zone. nil if the count is 0 or
  /// invalid.
  init?(secondsOfCamera seconds: Int64) {
    guard seconds > 0, seconds <= UInt32.max else { return nil }
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    self.init(parts)
  }

  private init(_ parts: tm) {
    self.init(
      Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday), Int(parts.tm_hour), Int(parts.tm_min),
      Int(parts.tm_sec))
  }
}
