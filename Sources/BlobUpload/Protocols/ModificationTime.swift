import BlobHTTP

/// The modification time of a file, in the formats of the protocols.
struct ModificationTime: Sendable, Hashable {
  /// Since 1970.
  var nanoseconds: Int64

  /// The field for PUT, resumable uploads and WebDAV. It comes from ownCloud and Nextcloud, whose clients send whole
  /// seconds.
  static let field = "X-OC-MTime"
  /// The key in the metadata of tus and S3. rclone uses it in S3 too.
  static let key = "mtime"

  /// Decimal seconds since 1970, with only as many fraction digits as needed: `1700000000.25`, `-0.5`.
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

  /// Whole seconds since 1970, rounded down.
  var seconds: Int64 {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return rest < 0 ? seconds - 1 : seconds
  }

  /// Whole seconds, for WebDAV servers. nil for the first day of 1970 and earlier: Nextcloud refuses such a time, and
  /// the file with it.
  var webDAV: String? {
    let seconds = nanoseconds / 1_000_000_000
    return seconds > 86_400 ? String(seconds) : nil
  }
}

extension UploadTarget {
  /// nil: no time is sent.
  var modificationTime: ModificationTime? { modified.map { ModificationTime(nanoseconds: $0) } }
}

extension HTTPHeaders {
  /// Adds the modification time of the file, if it is known.
  mutating func add(modificationTimeOf target: UploadTarget) {
    if let time = target.modificationTime { add(ModificationTime.field, time.text) }
  }
}
