/// The role of an upload that is created from parts. tus 1.0 §Concatenation.
package enum Concatenation: Sendable, Equatable {
  /// Its bytes become part of another upload; it is never published by itself.
  case partial
  /// It consists of the bytes of its parts, in this order. `text`: the client's original value, which HEAD returns.
  case final([UploadID], text: String)

  /// The value of `Upload-Concat`.
  package var text: String {
    switch self {
    case .partial: "partial"
    case .final(_, let text): text
    }
  }

  /// nil if the text is neither. Every URL must end with an upload's id; the rest of the URL is not checked.
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

  /// The URLs after `final;`, at least one; nil for any other text.
  static func urls(_ text: String) -> [Substring]? {
    guard text.utf8.starts(with: "final;".utf8) else { return nil }
    let urls = text.utf8.dropFirst(6).split(separator: UInt8(ascii: " ")).map { Substring($0) }
    return urls.isEmpty ? nil : urls
  }
}

extension UploadRecord {
  /// Whether its bytes belong to another upload.
  var isPart: Bool { concatenation == .partial }
  /// The parts of a final upload; nil for other uploads.
  package var parts: [UploadID]? {
    if case .final(let parts, _)? = concatenation { parts } else { nil }
  }
}
