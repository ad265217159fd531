import Blobs

/// The header of an age file, version 1 (c2sp.org/age): for each recipient, a stanza that wraps the file key, and a code
/// that authenticates them.
struct SealHeader: Sendable, Hashable {
  /// A file's key, wrapped for a recipient.
  struct Stanza: Sendable, Hashable {
    var arguments: [String]
    var body: [UInt8]
  }

  var stanzas: [Stanza]

  static let fileKeyCount = 16
  /// A header of more bytes is not read.
  static let most = 1 << 20
  private static let version = "age-encryption.org/v1\n"
  private static let columns = 64

  /// The header as it begins a file.
  func encoded(_ fileKey: [UInt8]) -> [UInt8] {
    let text = Self.version + stanzas.map(Self.encode).joined() + "---"
    return Array("\(text) \(Self.base64(Self.code(of: Array(text.utf8), fileKey)))\n".utf8)
  }

  private static func encode(_ stanza: Stanza) -> String {
    let body = Array(base64(stanza.body).utf8)
    // The last line has less than all columns, and may be empty.
    let lines = stride(from: 0, through: body.count, by: columns).map {
      String(decoding: body[$0..<min($0 + columns, body.count)], as: UTF8.self) + "\n"
    }
    return "-> \(stanza.arguments.joined(separator: " "))\n" + lines.joined()
  }

  private static func code(of text: [UInt8], _ fileKey: [UInt8]) -> [UInt8] {
    HMAC.sha256(text, key: hkdf(fileKey, info: Array("header".utf8), count: 32))
  }

  /// Base64 without padding.
  static func base64(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes, isPadded: false)
  }

  /// nil: this is not the one way to write these bytes.
  static func bytes(base64 text: String) -> [UInt8]? {
    Base64.decode(text).flatMap { base64($0) == text ? $0 : nil }
  }
}

/// The header of a file that is read.
struct ReadSealHeader: Sendable {
  let header: SealHeader
  /// Bytes of the header in the file.
  let count: Int
  private let text: [UInt8]
  private let code: [UInt8]

  /// nil: the header does not end within `bytes`. Throws `.unsupported` for what is no header of age's version 1.
  init?(_ bytes: [UInt8]) throws(BlobError) {
    var lines = Lines(rest: bytes[...])
    guard let version = try lines.next() else { return nil }
    if version != "age-encryption.org/v1" { throw Self.refused("it is no age file of version 1") }
    var stanzas: [SealHeader.Stanza] = []
    while true {
      guard let line = try lines.next() else { return nil }
      if line.hasPrefix("---") {
        guard !stanzas.isEmpty, line.hasPrefix("--- "), let code = SealHeader.bytes(base64: String(line.dropFirst(4))),
          code.count == 32
        else { throw Self.refused("its header has no end as it should be") }
        self.code = code
        count = lines.rest.startIndex
        text = Array(bytes[..<(count - line.utf8.count - 1 + 3)])
        header = SealHeader(stanzas: stanzas)
        return
      }
      let arguments = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      guard arguments.count > 1, arguments[0] == "->", arguments.allSatisfy({ !$0.isEmpty }) else {
        throw Self.refused("its header has a line that begins no stanza")
      }
      var body = ""
      while true {
        guard let line = try lines.next() else { return nil }
        if line.utf8.count > 64 { throw Self.refused("a line of its header is too long") }
        body += line
        if line.utf8.count < 64 { break }
      }
      guard let bytes = SealHeader.bytes(base64: body) else { throw Self.refused("a stanza's body is not base64") }
      stanzas.append(.init(arguments: Array(arguments.dropFirst()), body: bytes))
    }
  }

  /// Whether the header was made by someone who has the file key.
  func isAuthentic(_ fileKey: [UInt8]) -> Bool {
    let mine = HMAC.sha256(text, key: hkdf(fileKey, info: Array("header".utf8), count: 32))
    return zip(mine, code).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  /// The bytes with which every age file of version 1 begins.
  static let firstLine = Array("age-encryption.org/v1\n".utf8)

  static func refused(_ why: String) -> BlobError { BlobError(.unsupported, "read an age file: \(why)") }

  /// Lines of printable ASCII, each with its end.
  private struct Lines {
    var rest: ArraySlice<UInt8>

    mutating func next() throws(BlobError) -> String? {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      let line = rest[..<end]
      if !line.allSatisfy({ 0x20...0x7e ~= $0 }) { throw refused("its header has a character that is not allowed") }
      rest = rest[(end + 1)...]
      return String(decoding: line, as: UTF8.self)
    }
  }
}
