import Blobs

/// Secrets of a request that must not be shown or stored: credentials in its header fields, the values of its URL's
/// query and of form fields. A server or a proxy may repeat them in its response, in any encoding.
package struct RequestSecrets: Sendable {
  /// The secrets as sent, and in the normalized form of `Spelling.plain`.
  private let words, plainWords: Set<[UInt8]>

  /// - `values`: further secrets, such as the values of form fields.
  package init(_ headers: HTTPHeaders = [:], query: String? = nil, values: [String] = []) {
    var words = headers.fields.flatMap { Self.words(of: $0.value) } + values.map { Array($0.utf8) }
    for pair in query?.utf8.split(separator: UInt8(ascii: "&")) ?? [] {
      let value = pair.contains(UInt8(ascii: "=")) ? pair.drop { $0 != UInt8(ascii: "=") }.dropFirst() : pair
      words += [Array(value), PercentCoding.decoded(value)]
    }
    // Words of fewer than 6 bytes are unlikely to be secrets and occur in responses by chance.
    words = words.filter { $0.count >= 6 }
    // The end is left out, because its base64 text depends on the bytes that follow.
    words += words.map { Array(Base64.encode($0.prefix($0.count / 3 * 3)).utf8) }
    self.words = Set(words)
    plainWords = Set(self.words.map { Spelling.plain($0) }.filter { $0.count >= 6 })
  }

  package func isOne(in bytes: some Collection<UInt8>) -> Bool {
    if words.isEmpty { return false }
    let text = Array(bytes)
    if words.contains(where: { text.firstRange(of: $0) != nil }) { return true }
    let plain = Spelling.plain(text)
    return plainWords.contains { plain.firstRange(of: $0) != nil }
  }

  /// The fields of a response whose values are kept in the journal or shown.
  private static let keptFields = [
    "Location", "Content-Location", "ETag", "Content-Encoding", "x-amz-bucket-region", "x-amz-version-id",
  ]

  /// Whether `removed(from:)` could change the response. It is cheap enough to be asked for every response.
  package static func mayStand(in response: HTTPResponse) -> Bool {
    !response.isSuccess || !response.body.isEmpty || mayStand(in: response.head)
  }

  private static func mayStand(in head: HTTPHead) -> Bool {
    head.headers.fields.contains { field in keptFields.contains { field.name.isSameField($0) } }
  }

  /// The response without what it repeats of the secrets. An unsuccessful response loses its body, that of a successful one
  /// is marked, and every response loses the fields that would be kept or shown. A file that the server has stored counts
  /// as stored all the same.
  package func removed(from response: HTTPResponse) -> HTTPResponse {
    if words.isEmpty { return response }
    var response = marked(response)
    if response.repeatsSecret, !response.isSuccess { response.body = [] }
    response.head = removed(from: response.head)
    return response
  }

  /// The response, whose body is marked if it repeats a secret. Only the beginning of a long body is searched: text that is
  /// shown comes from there.
  package func marked(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    let searched = response.isSuccess ? response.body.prefix(Self.mostShown) : response.body[...]
    response.repeatsSecret = response.repeatsSecret || isOne(in: searched)
    return response
  }
  /// No text is shown of a longer body.
  package static let mostShown = 64 << 10

  package func removed(from head: HTTPHead) -> HTTPHead {
    if words.isEmpty { return head }
    var head = head
    for name in Self.keptFields {
      guard let value = head.headers[name], isOne(in: value.utf8) else { continue }
      // Encoded content must not be mistaken for plain content.
      head.headers[name] = name == "Content-Encoding" ? "unknown" : nil
    }
    return head
  }

  /// The words of a field value, and the password of `Basic` credentials. RFC 7617.
  private static func words(of value: String) -> [[UInt8]] {
    let words = value.split { " =;,".contains($0) }
    let scheme = value.prefix { $0 != " " }
    let login = scheme.isSameField("Basic") ? Base64.decode(value.dropFirst(6).trimmed) : nil
    let password = login.map { Array($0.drop { $0 != UInt8(ascii: ":") }.dropFirst()) }
    return words.map { Array($0.utf8) } + [password ?? []]
  }
}

/// Normalizes text for comparison: decodes percent-encoding, JSON escapes, HTML and XML references and `+` for a space,
/// and converts to lower case. Both sides of a comparison are normalized, so distinctions that this loses, such as `+`
/// against a space, do not matter.
private enum Spelling {
  /// A server may have encoded text that was encoded before.
  private static let mostLayers = 3
  private static let marks = Array("%\\&+".utf8)

  static func plain(_ bytes: [UInt8]) -> [UInt8] {
    var text = bytes
    for _ in 0..<mostLayers where text.contains(where: { marks.contains($0) }) { text = read(text) }
    return text.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
  }

  private static func read(_ text: [UInt8]) -> [UInt8] {
    var plain: [UInt8] = []
    plain.reserveCapacity(text.count)
    var place = 0
    while place < text.count {
      let rest = text[place...]
      let meant: (bytes: [UInt8], length: Int)? =
        switch text[place] {
        case UInt8(ascii: "%"): percent(rest)
        case UInt8(ascii: "\\"): escape(rest)
        case UInt8(ascii: "&"): reference(rest)
        case UInt8(ascii: "+"): ([UInt8(ascii: " ")], 1)
        default: nil
        }
      plain += meant?.bytes ?? [text[place]]
      place += meant?.length ?? 1
    }
    return plain
  }

  /// Decodes a percent-encoded byte. RFC 3986 §2.1.
  private static func percent(_ text: ArraySlice<UInt8>) -> ([UInt8], Int)? {
    number(text.dropFirst().prefix(2), count: 2).map { ([UInt8($0)], 3) }
  }

  /// Decodes a JSON escape. A surrogate pair is decoded as one character. RFC 8259 §7.
  private static func escape(_ text: ArraySlice<UInt8>) -> ([UInt8], Int)? {
    let rest = text.dropFirst()
    guard let kind = rest.first else { return nil }
    guard kind == UInt8(ascii: "u") else {
      return isPunctuation(kind) ? ([kind], 2) : nil
    }
    guard let unit = number(rest.dropFirst().prefix(4), count: 4) else { return nil }
    if let scalar = Unicode.Scalar(unit) { return (Array(String(scalar).utf8), 6) }
    let second = rest.dropFirst(5)
    guard 0xD800..<0xDC00 ~= unit, second.starts(with: "\\u".utf8),
      let low = number(second.dropFirst(2).prefix(4), count: 4), 0xDC00..<0xE000 ~= low,
      let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    else { return nil }
    return (Array(String(scalar).utf8), 12)
  }

  /// Decodes numeric character references and the named ones that every encoder writes.
  private static func reference(_ text: ArraySlice<UInt8>) -> ([UInt8], Int)? {
    guard let end = text.prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return nil }
    let name = text[(text.startIndex + 1)..<end]
    let length = end - text.startIndex + 1
    for (known, byte) in named where name.elementsEqual(known.utf8) { return ([byte], length) }
    guard name.first == UInt8(ascii: "#") else { return nil }
    let digits = name.dropFirst()
    let isHexadecimal = digits.first == UInt8(ascii: "x") || digits.first == UInt8(ascii: "X")
    let value =
      isHexadecimal
      ? number(digits.dropFirst(), count: digits.count - 1) : UInt32(String(decoding: digits, as: UTF8.self))
    return value.flatMap { Unicode.Scalar($0) }.map { (Array(String($0).utf8), length) }
  }

  private static let named: [(String, UInt8)] = [
    ("amp", UInt8(ascii: "&")), ("lt", UInt8(ascii: "<")), ("gt", UInt8(ascii: ">")), ("quot", UInt8(ascii: "\"")),
    ("apos", UInt8(ascii: "'")), ("sol", UInt8(ascii: "/")), ("plus", UInt8(ascii: " ")), ("equals", UInt8(ascii: "=")),
  ]

  private static func isPunctuation(_ byte: UInt8) -> Bool { "\"\\/'".utf8.contains(byte) }

  /// nil if `digits` are not exactly `count` hexadecimal digits.
  private static func number(_ digits: ArraySlice<UInt8>, count: Int) -> UInt32? {
    if digits.count != count || count == 0 || count > 8 { return nil }
    var value: UInt32 = 0
    for digit in digits {
      guard let digit = digit.hexValue else { return nil }
      value = value << 4 | UInt32(digit)
    }
    return value
  }
}
