import Blobs

/// Dates in HTTP header fields. RFC 9110 §5.6.7.
public enum HTTPDate {
  /// Seconds since 1970 of an IMF-fixdate (`Sun, 06 Nov 1994 08:49:37 GMT`), or of one of the two obsolete forms
  /// (`Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`); nil for anything else, and for a year before 1970.
  public static func seconds(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { seconds(UnsafeRawBufferPointer($0)[...]) }
  }

  private typealias Word = Slice<UnsafeRawBufferPointer>

  private static func seconds(_ text: Word) -> Int64? {
    var words = text.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ",") }
    if words.count == 4 {
      let date = words[1].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
      if date.count != 3 { return nil }
      words = [words[0]] + date + words[2...]
    }
    guard words.count == 5 || words.count == 6, isDay(words[0]) else { return nil }
    // The form of C's asctime has the month before the day, the year at the end, and no time zone.
    if words.count == 5 {
      return seconds(year: words[4], month: words[1], day: words[2], time: words[3])
    }
    guard words[5].elementsEqual("GMT".utf8) || words[5].elementsEqual("UTC".utf8) else { return nil }
    return seconds(year: words[3], month: words[2], day: words[1], time: words[4])
  }

  /// nil if a number is out of range or the day does not exist.
  package static func seconds(
    year: Int64, month: Int64, day: Int64, hour: Int64, minute: Int64, second: Int64
  ) -> Int64? {
    // A leap second is written as 60.
    guard 1970...9999 ~= year, 1...12 ~= month, 1...31 ~= day, 0...23 ~= hour, 0...59 ~= minute, 0...60 ~= second
    else { return nil }
    let days = days(year: year, month: month, day: day)
    guard civil(days) == (year, month, day) else { return nil }
    return days * 86_400 + hour * 3600 + minute * 60 + min(second, 59)
  }

  /// Formats an IMF-fixdate for a header field. `seconds` count from 1970. Returns nil outside the years 0 to 9999,
  /// which the format cannot express.
  package static func text(seconds: Int64) -> String? {
    let (days, second) = seconds.flooredQuotientAndRemainder(dividingBy: 86_400)
    // The year 0 begins 719,528 days before 1970, and the year 10,000 begins 2,932,897 days after it.
    guard -719_528..<2_932_897 ~= days else { return nil }
    let (year, month, day) = civil(days)
    let weekday = days.flooredQuotientAndRemainder(dividingBy: 7).remainder
    return "\(weekdays[Int(weekday)]), \(padded(day, 2)) \(months[Int(month) - 1]) \(padded(year, 4)) "
      + "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2)) GMT"
  }

  /// Like `text(seconds:)`, for nanoseconds since 1970, rounded down.
  package static func text(_ nanoseconds: Int64) -> String? {
    text(seconds: nanoseconds.flooredQuotientAndRemainder(dividingBy: 1_000_000_000).quotient)
  }

  private static func seconds(year: Word, month: Word, day: Word, time: Word) -> Int64? {
    let clock = time.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map(number)
    guard clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2],
      let month = months.firstIndex(where: { month.elementsEqual($0.utf8) }), let day = number(day),
      var full = Int64(digits: year)
    else { return nil }
    // RFC 9110 limits a two-digit year to 50 years in the future. These formats are older than 2000, so a fixed pivot
    // is enough.
    if year.count == 2 { full += full < 70 ? 2000 : 1900 } else if year.count != 4 { return nil }
    return seconds(
      year: full, month: Int64(month) + 1, day: day, hour: hour, minute: minute, second: second)
  }

  private static func number(_ text: Word) -> Int64? { text.count <= 2 ? Int64(digits: text) : nil }

  private static func isDay(_ word: Word) -> Bool { weekdays.contains { word.starts(with: $0.utf8) } }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }

  /// Days since 1970 of a Gregorian date. The computation starts the year in March, so that the leap day is its last
  /// day.
  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
    return year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
  }

  /// The date of a day counted from 1970; valid from the year 0.
  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // 400 years have 146,097 days. The two months before the year 0 belong to the preceding era.
    let (era, dayOfEra) = (days + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let year = era * 400 + yearOfEra
    return (month < 10 ? year : year + 1, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
  }
}

// 1 January 1970 was a Thursday.
private let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
private let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

extension Int64 {
  /// The quotient rounded down and the non-negative remainder.
  fileprivate func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
