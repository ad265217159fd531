/// The role of an upload that is sent in parts. tus 1.0 §Concatenation.
package enum Concatenation: Sendable, Equatable {
  /// Its bytes become a part of another upload; by itself it is never published.
  case partial
  /// It has no bytes of its own but those of its parts, in this order. `text`: the client's words, which HEAD repeats.
  case final([UploadID], text: String)

  /// The value of `Upload-Concat`.
  package var text: String {
    switch self {
    case .partial: "partial"
    case .final(_, let text): text
    }
  }

  /// nil for what is neither. Every URL must end with an upload's id; which server it names is not looked at.
  package init?(_ text: String) {
    if text == "partial" {
      self = .partial
      return
    }
    guard let urls = Self.urls(text) else { return nil }
    var parts: [UploadID] = []
    for url in urls {
      let name = url.utf8.lastIndex(of: UInt8(ascii: "/")).map { url[url.utf8.index(after: $0)...] } ?? url
      guard let part = UploadID(name) else { return nil }
      parts.append(part)
    }
    self = .final(parts, text: text)
  }

  /// What stands behind `final;`, at least one; nil for anything else.
  static func urls(_ text: String) -> [Substring]? {
    guard text.utf8.starts(with: "final;".utf8) else { return nil }
    let urls = text.utf8.dropFirst(6).split(separator: UInt8(ascii: " ")).map { Substring($0) }
    return urls.isEmpty ? nil : urls
  }
}

extension UploadRecord {
  /// Its bytes are for another upload.
  var isPart: Bool { concatenation == .partial }
  /// What a final upload is made of; nil for any other.
  package var parts: [UploadID]? {
    if case .final(let parts, _)? = concatenation { parts } else { nil }
  }
}
