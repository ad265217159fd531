import BlobHTTP
import Platform

extension HTTPDate {
  /// As `text(seconds:)`; `nanoseconds` count from 1970, rounded down.
  static func text(_ nanoseconds: Int64) -> String? {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return text(seconds: rest < 0 ? seconds - 1 : seconds)
  }

  /// IMF-fixdate, as header fields carry it. RFC 9110 §5.6.7.
  /// `seconds` count from 1970; nil before the year 0 and past 9999, which the format cannot tell.
  static func text(seconds: Int64) -> String? {
    var seconds = time_t(seconds)
    var date = tm()
    guard gmtime_r(&seconds, &date) != nil, -1900..<8100 ~= date.tm_year else { return nil }
    let day = days[Int(date.tm_wday)]
    let month = months[Int(date.tm_mon)]
    let year = String(date.tm_year + 1900)
    return "\(day), \(two(date.tm_mday)) \(month) \(String(repeating: "0", count: 4 - year.utf8.count))\(year) "
      + "\(two(date.tm_hour)):\(two(date.tm_min)):\(two(date.tm_sec)) GMT"
  }

  private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

private let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
