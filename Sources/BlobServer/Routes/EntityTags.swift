import BlobHTTP

/// The value of `If-Match` or `If-None-Match`: `*`, or a list of entity tags. RFC 9110 §13.1.1, §13.1.2.
struct EntityTags {
  /// The value contains an unquoted `*`, which matches any version of the file.
  let isAny: Bool
  /// The entity tags as sent, with their quotes, and with the prefix `W/` if weak. Invalid members are included: they
  /// equal no file's tag.
  private let tags: [String]

  /// nil if the request has no field with this name.
  init?(_ name: String, of headers: HTTPHeaders) {
    let lines = headers.fields.filter { $0.name.isSameField(name) }.map(\.value)
    if lines.isEmpty { return nil }
    tags = Self.members(lines.joined(separator: ","))
    isAny = tags.contains("*")
  }

  /// Whether one of the tags matches the one of the file. `weakly`: weak entity tags match as well. RFC 9110 §8.8.3.2.
  func include(_ etag: String, weakly: Bool = false) -> Bool {
    isAny || tags.contains(etag) || weakly && tags.contains("W/" + etag)
  }

  /// Splits the list. Within its quotes, an entity tag may contain commas and asterisks, and a backslash does not
  /// escape. RFC 9110 §8.8.3.
  private static func members(_ value: String) -> [String] {
    var isQuoted = false
    return value.utf8.split { byte in
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      return byte == UInt8(ascii: ",") && !isQuoted
    }.map { Substring($0).trimmed }
  }
}
