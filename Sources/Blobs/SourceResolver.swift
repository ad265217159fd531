/// Finds the source that a URL names, by its scheme.
public struct SourceResolver: Sendable {
  /// Creates a source from a URL string.
  public typealias Maker = @Sendable (_ url: String) throws(BlobError) -> any BlobSource

  private var makers: [String: Maker]

  /// The keys are schemes in lower case, without the colon.
  public init(_ makers: [String: Maker]) { self.makers = makers }

  /// A resolver for `file:` URLs of this machine.
  public static let files = SourceResolver(["file": makeFileSource])

  /// Returns a copy of this resolver that uses `maker` for `scheme`.
  public func adding(_ scheme: String, _ maker: @escaping Maker) -> SourceResolver {
    var other = self
    other.makers[scheme.lowercased()] = maker
    return other
  }

  /// Throws `.unsupported` for an unknown scheme, or whatever the scheme's maker throws.
  public func source(for url: String) throws(BlobError) -> any BlobSource {
    let scheme = url.prefix { $0 != ":" }.lowercased()
    guard scheme.utf8.count < url.utf8.count, let maker = makers[scheme] else {
      let known = makers.keys.sorted().map { "\($0):" }.joined(separator: ", ")
      throw BlobError(.unsupported, "no kind of source is known for \(scheme): (there are \(known))")
    }
    return try maker(url)
  }
}

/// Accepts `file:/path`, `file:///path` and `file://localhost/path`, with any byte percent-encoded.
@Sendable private func makeFileSource(_ url: String) throws(BlobError) -> any BlobSource {
  var rest = Array(url.utf8)[5...]
  for prefix in ["//localhost/", "///"] where rest.starts(with: Array(prefix.utf8)) {
    rest = rest.dropFirst(prefix.utf8.count - 1)
    break
  }
  guard rest.first == UInt8(ascii: "/"), !rest.starts(with: Array("//".utf8)) else {
    throw BlobError(.unsupported, "\(url) is not a file of this machine")
  }
  // The query and the fragment are not part of the path.
  rest = rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
  guard let path = percentDecoded(rest), !path.contains(0) else {
    throw BlobError(.unsupported, "\(url) is not percent-encoded well")
  }
  return FileSource(BytePath(path))
}

private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
  var bytes: [UInt8] = []
  var rest = text
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(byte)
      continue
    }
    guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else { return nil }
    bytes.append(high << 4 | low)
  }
  return bytes
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
  Character(UnicodeScalar(byte)).hexDigitValue.map { UInt8($0) }
}
