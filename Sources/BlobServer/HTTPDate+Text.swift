#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif
import BlobHTTP

extension HTTPDate {
  /// IMF-fixdate, as header fields carry it. RFC 9110 §5.6.7.
  /// `nanoseconds` count from 1970, rounded down; nil past the year 9999, which the format cannot tell.
  static func text(_ nanoseconds: Int64) -> String? {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var date = tm()
    guard gmtime_r(&seconds, &date) != nil, date.tm_year < 8100 else { return nil }
    let day = days[Int(date.tm_wday)]
    let month = months[Int(date.tm_mon)]
    return "\(day), \(two(date.tm_mday)) \(month) \(date.tm_year + 1900) "
      + "\(two(date.tm_hour)):\(two(date.tm_min)):\(two(date.tm_sec)) GMT"
  }

  private static func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

private let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
