import BlobHTTP

/// The meaning of a `Range` field for a file. RFC 9110 §14.1.2.
enum ByteRange: Equatable {
  /// No range, several ranges, or an invalid one: a response with the whole file is correct in each case.
  case whole
  case part(Range<Int64>)
  /// The range begins past the end: 416.
  case unsatisfiable

  init(_ field: String?, of length: Int64) {
    self = .whole
    guard let field, field.utf8.count > 6, field.prefix(6).isSameField("bytes=") else { return }
    let text = field.dropFirst(6)
    guard let dash = text.firstIndex(of: "-") else { return }
    let first = text[..<dash].trimmed
    let last = text[text.index(after: dash)...].trimmed
    if first.isEmpty {
      guard let suffix = Self.number(last) else { return }
      let start = max(0, length - suffix)
      // For an empty file a suffix range selects the whole file, which no Content-Range can express.
      if length > 0 || suffix == 0 { self = start < length ? .part(start..<length) : .unsatisfiable }
      return
    }
    guard let start = Self.number(first) else { return }
    var end = length
    if !last.isEmpty {
      guard let number = Self.number(last), number >= start else { return }
      end = min(length, number == .max ? number : number + 1)
    }
    self = start < length ? .part(start..<end) : .unsatisfiable
  }

  /// Clamped, because a number above 2^63 is past the end of any file.
  private static func number(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return Int64(text) ?? .max
  }
}
