import Blobs

/// Digests of content and of representations: `Content-Digest`, `Repr-Digest`, `Want-Repr-Digest`. RFC 9530.
package enum DigestField {
  /// The algorithms that the IANA registry lists as active. RFC 9530 §5.
  package static let algorithms: [(key: String, algorithm: DigestAlgorithm)] = [
    ("sha-256", .sha256), ("sha-512", .sha512),
  ]

  /// The name of an algorithm in the fields. Algorithms that are not in the registry keep their own names; Fullbore's client and
  /// server use these in QUERY and HEAD only.
  package static func key(of algorithm: DigestAlgorithm) -> String {
    algorithms.first { $0.algorithm == algorithm }?.key ?? algorithm.name
  }

  /// The algorithms of the registry.
  package static let registered = algorithms.map(\.algorithm)

  /// The value of `Want-Repr-Digest` that asks for one digest. RFC 9530 §4.
  package static func wish(_ algorithm: DigestAlgorithm) -> String { "\(key(of: algorithm))=1" }

  /// The value of `Want-Content-Digest` for a server that checks all of `algorithms`. RFC 9530 §4.
  package static let offer = "sha-256=10, sha-512=3"

  /// The digests with `known` algorithms; others are ignored. nil if the field is malformed or a digest has the wrong
  /// length.
  package static func values(_ field: String, _ known: [DigestAlgorithm] = registered) -> [DigestAlgorithm: [UInt8]]? {
    var values: [DigestAlgorithm: [UInt8]] = [:]
    for member in field.split(separator: ",", omittingEmptySubsequences: false) {
      let parts = member.trimmed.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, let bytes = bytes(parts[1]) else { return nil }
      guard let algorithm = known.first(where: { key(of: $0) == parts[0] }) else { continue }
      guard bytes.count == algorithm.size else { return nil }
      values[algorithm] = bytes
    }
    return values
  }

  /// Decodes a byte sequence and ignores its parameters. RFC 9651 §3.3.5.
  private static func bytes(_ item: Substring) -> [UInt8]? {
    guard item.first == ":" else { return nil }
    let rest = item.dropFirst()
    guard let end = rest.firstIndex(of: ":") else { return nil }
    let after = rest[rest.index(after: end)...]
    guard after.isEmpty || after.first == ";" else { return nil }
    return Base64.decode(rest[..<end])
  }

  /// The value of a field with the digests that have `known` algorithms.
  package static func text(_ values: [DigestAlgorithm: [UInt8]], _ known: [DigestAlgorithm] = registered) -> String {
    known.compactMap { algorithm in values[algorithm].map { "\(key(of: algorithm))=:\(Base64.encode($0)):" } }
      .joined(separator: ", ")
  }

  /// The algorithm among `known` with the highest preference; nil if the client wants none of them. RFC 9530 §4.
  package static func wanted(_ field: String?, _ known: [DigestAlgorithm] = registered) -> DigestAlgorithm? {
    guard let preferences = StructuredField.integers(field) else { return nil }
    let known = known.compactMap { algorithm in preferences[key(of: algorithm)].map { (algorithm, weight: $0) } }
    return known.filter { $0.weight > 0 }.max { $0.weight < $1.weight }?.0
  }
}
