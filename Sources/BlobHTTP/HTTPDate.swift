import CCurl

/// Dates as HTTP writes them.
public enum HTTPDate {
  /// Seconds since 1970 of an IMF-fixdate or one of the older forms; nil for anything else. RFC 9110 §5.6.7.
  public static func seconds(_ text: String) -> Int64? {
    let seconds = curl_getdate(text, nil)
    return seconds < 0 ? nil : Int64(seconds)
  }
}
