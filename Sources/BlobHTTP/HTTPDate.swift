import CCurl

/// Dates as HTTP writes them.
public enum HTTPDate {
  /// Seconds since 1970 of an IMF-fixdate or one of the older forms; nil for anything else,
  /// and for a year before 1970 or past 9999. RFC 9110 §5.6.7.
  public static func seconds(_ text: String) -> Int64? {
    let seconds = Int64(curl_getdate(text, nil))
    return 0...latest ~= seconds ? seconds : nil
  }

  /// The last second of the year 9999: a year has four digits, and libcurl takes any number of them.
  private static let latest: Int64 = 253_402_300_799
}
