import BlobHTTP

/// When a file was last written, as protocols carry it.
struct ModificationTime: Sendable, Hashable {
  /// Since 1970.
  var nanoseconds: Int64

  /// PUT, resumable uploads and WebDAV. It comes from ownCloud and Nextcloud, whose clients send whole seconds.
  static let field = "X-OC-MTime"
  /// The key in the metadata of tus and S3. rclone has it in S3 too.
  static let key = "mtime"

  /// Decimal seconds since 1970, with as many digits of their fraction as there are: `1700000000.25`, `-0.5`.
  var text: String {
    let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
    return String(unsafeUninitializedCapacity: 32) { text in
      var place = 32
      func put(_ byte: UInt8) {
        place -= 1
        text[place] = byte
      }
      func putDigit(_ number: UInt64) { put(UInt8(truncatingIfNeeded: number % 10) + 48) }
      var (fraction, digits) = (rest, rest == 0 ? 0 : 9)
      while digits > 0, fraction % 10 == 0 { (fraction, digits) = (fraction / 10, digits - 1) }
      for _ in 0..<digits {
        putDigit(fraction)
        fraction /= 10
      }
      if digits > 0 { put(UInt8(ascii: ".")) }
      var whole = seconds
      repeat {
        putDigit(whole)
        whole /= 10
      } while whole > 0
      if nanoseconds < 0 { put(UInt8(ascii: "-")) }
      for index in place..<32 { text[index - place] = text[index] }
      return 32 - place
    }
  }

  /// Whole seconds since 1970, towards the past.
  var seconds: Int64 {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0 ? seconds - 1 : seconds
  }

  /// Whole seconds, for WebDAV servers; nil for a time that Nextcloud refuses, and the file with it: the first day of 1970
  /// and what is before.
  var webDAV: String? {
    let seconds = nanoseconds / 1_000_000_000
    return seconds > 86_400 ? String(seconds) : nil
  }
}

extension UploadTarget {
  /// nil: nothing is told.
  var modificationTime: ModificationTime? { modified.map { ModificationTime(nanoseconds: $0) } }
}

extension HTTPHeaders {
  /// Tells when the file was last written, where that is known.
  mutating func add(modificationTimeOf target: UploadTarget) {
    if let time = target.modificationTime { add(ModificationTime.field, time.text) }
  }
}
