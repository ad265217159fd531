import BlobHTTP
import Blobs

/// A point in time as text, in UTC.
struct Timestamp {
  /// Nanoseconds since 1970.
  let nanoseconds: Int64

  static var now: Timestamp { Timestamp(nanoseconds: FileStamp.now) }

  /// `2026-11-27T04:31:56.123Z`. RFC 3339.
  var iso: String {
    guard let (day, month, year, time) = fields, let number = Self.months.firstIndex(of: month) else { return "" }
    let milliseconds = String(1000 + nanoseconds / 1_000_000 % 1000).dropFirst()
    return "\(year)-\(number < 9 ? "0" : "")\(number + 1)-\(day)T\(time).\(milliseconds)Z"
  }

  /// `27/Nov/2026:04:31:56 +0000`, as in logs of web servers.
  var common: String {
    guard let (day, month, year, time) = fields else { return "" }
    return "\(day)/\(month)/\(year):\(time) +0000"
  }

  /// The fields of `Fri, 27 Nov 2026 04:31:56 GMT`.
  private var fields: (day: String, month: String, year: String, time: String)? {
    guard let words = HTTPDate.text(nanoseconds)?.split(separator: " ").map(String.init), words.count == 6 else {
      return nil
    }
    return (words[1], words[2], words[3], words[4])
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
