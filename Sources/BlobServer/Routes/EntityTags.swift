import BlobHTTP

/// The value of `If-Match` or `If-None-Match`: `*`, or a list of entity-tags. RFC 9110 §13.1.1, §13.1.2.
struct EntityTags {
  /// `*` stands there, without quotes, which means any version of the file.
  let isAny: Bool
  /// Each as it was sent, with its quotes, and with `W/` before them where it is a weak one. What is no entity-tag is
  /// among them as well: it is the tag of no file.
  private let tags: [String]

  /// nil: the request has no field of this name.
  init?(_ name: String, of headers: HTTPHeaders) {
    let lines = headers.fields.filter { $0.name.isSameField(name) }.map(\.value)
    if lines.isEmpty { return nil }
    tags = Self.members(lines.joined(separator: ","))
    isAny = tags.contains("*")
  }

  /// Whether the file is one of the versions. `weakly`: an entity-tag that is marked as weak counts as well. RFC 9110 §8.8.3.2.
  func include(_ item: StoredItem, weakly: Bool = false) -> Bool {
    isAny || tags.contains(item.etag) || weakly && tags.contains("W/" + item.etag)
  }

  /// An entity-tag may have commas and asterisks between its quotes, and a backslash in it escapes nothing. RFC 9110 §8.8.3.
  private static func members(_ value: String) -> [String] {
    var isQuoted = false
    return value.utf8.split { byte in
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      return byte == UInt8(ascii: ",") && !isQuoted
    }.map { Substring($0).trimmed }
  }
}
