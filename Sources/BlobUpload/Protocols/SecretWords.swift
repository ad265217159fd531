import BlobHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Words of a request that are shown to nobody and kept nowhere: credentials in its header fields, the values of its URL's
/// query, and those of a form's fields. A server may repeat them in its answer.
struct SecretWords {
  private let words: [[UInt8]]

  /// `values`: further secrets, such as a form's fields.
  init(_ headers: HTTPHeaders, query: String? = nil, values: [String] = []) {
    var words = headers.fields.flatMap { Self.words(of: $0.value) } + values.map { Array($0.utf8) }
    for pair in query?.utf8.split(separator: UInt8(ascii: "&")) ?? [] {
      let value = pair.drop { $0 != UInt8(ascii: "=") }.dropFirst()
      words += [Array(value), PercentCoding.decoded(value)]
    }
    // Short words are no secrets, and stand in answers by chance.
    self.words = words.filter { $0.count >= 6 }
  }

  func isOne(in bytes: some Collection<UInt8>) -> Bool { words.contains { bytes.firstRange(of: $0) != nil } }

  /// Whether the place that a response names repeats one of them.
  func isOne(inLocationOf response: HTTPResponse) -> Bool {
    if words.isEmpty { return false }
    return response.head.headers["Location"].map { isOne(in: Array($0.utf8)) } ?? false
  }

  /// The words of a field, and the password of `Basic`. RFC 7617.
  private static func words(of value: String) -> [[UInt8]] {
    let words = value.split { " =;,".contains($0) }
    let scheme = value.prefix { $0 != " " }
    let login = scheme.isSameField("Basic") ? Data(base64Encoded: value.dropFirst(6).trimmed) : nil
    let password = login.map { Array($0.drop { $0 != UInt8(ascii: ":") }.dropFirst()) }
    return words.map { Array($0.utf8) } + [password ?? []]
  }
}
