import BlobHTTP

/// A profile in the files that Amazon's tools share, `~/.aws/config` and `~/.aws/credentials`.
/// https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html
struct S3Profile: Sendable {
  /// Settings by name; a nested setting has its parent's name and a dot before its own.
  private(set) var values: [String: String] = [:]
  private(set) var isThere = false

  /// Values in the credentials file take precedence over those in the configuration file.
  init(_ name: String, credentials: String?, config: String?) {
    let sections = config.map { Self.sections(of: $0) } ?? [:]
    // Only the section of the default profile may omit the word "profile".
    for title in ["profile \(name)", name == "default" ? name : ""] { take(sections[title]) }
    if let services = values["services"], let section = sections["services \(services)"] {
      for (key, value) in section where values[key] == nil { values[key] = value }
    }
    take(credentials.flatMap { Self.sections(of: $0)[name] })
  }

  private mutating func take(_ section: [String: String]?) {
    guard let section else { return }
    isThere = true
    values.merge(section) { _, new in new }
  }

  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  private static func sections(of text: String) -> [String: [String: String]] {
    var sections: [String: [String: String]] = [:]
    var section: String?
    var parent = ""
    for line in text.split(whereSeparator: \.isNewline) {
      let content = line.trimmed
      if content.isEmpty || content.hasPrefix("#") || content.hasPrefix(";") { continue }
      if content.hasPrefix("[") {
        let title = content.dropFirst().prefix { $0 != "]" }
        section = title.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
        sections[section!, default: [:]].merge([:]) { old, _ in old }
        parent = ""
        continue
      }
      guard let section, let equals = content.firstIndex(of: "=") else { continue }
      let key = content[..<equals].trimmed.lowercased()
      let value = content[content.index(after: equals)...].trimmed
      let isNested = line.first == " " || line.first == "\t"
      if isNested, !parent.isEmpty {
        sections[section]?["\(parent).\(key)"] = value
      } else {
        parent = value.isEmpty ? key : ""
        sections[section]?[key] = value
      }
    }
    return sections
  }
}
