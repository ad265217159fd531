import Blobs
import Platform

/// Times in the time zone of this machine.
enum LocalTime {
  /// `seconds` since 1970, in a format of `strftime`, such as `%H:%M:%S`.
  static func text(_ seconds: Int64, _ format: String) -> String {
    var (moment, parts) = (time_t(clamping: seconds), tm())
    localtime_r(&moment, &parts)
    var text = [CChar](repeating: 0, count: 64)
    _ = strftime(&text, text.count - 1, format, &parts)
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }
}
