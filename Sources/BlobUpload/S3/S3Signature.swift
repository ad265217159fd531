import BlobCrypto
import Blobs

/// AWS Signature Version 4 for the service S3, as pure functions.
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
package struct S3Signature: Sendable {
  package static let algorithm = "AWS4-HMAC-SHA256"
  /// The SHA-256 digest of an empty body.
  package static let emptyPayload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  package static let unsignedPayload = "UNSIGNED-PAYLOAD"
  package static let unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

  /// In the format of `x-amz-date`: `20130524T000000Z`.
  package var timestamp: String
  package var region: String

  package init(timestamp: String, region: String) {
    self.timestamp = timestamp
    self.region = region
  }

  /// The credential scope: `20130524/us-east-1/s3/aws4_request`.
  package var scope: String { "\(timestamp.prefix(8))/\(region)/s3/aws4_request" }

  /// The signing key, valid for one day and region. Computing it takes four digests.
  package func key(_ secretKey: String) -> [UInt8] {
    [String(timestamp.prefix(8)), region, "s3", "aws4_request"].reduce(Array("AWS4\(secretKey)".utf8)) { key, text in
      HMAC.sha256(text.utf8, key: key)
    }
  }

  /// `path` and `query` as in the request, percent-encoded once; `fields` with names in lower case.
  package static func canonicalRequest(
    _ method: String, path: String, query: String?, fields: [(name: String, value: String)], payload: String
  ) -> String {
    let fields = inOrder(fields)
    var text = "\(method)\n\(path)\n\(canonicalQuery(query ?? ""))\n"
    for (name, value) in fields { text += "\(name):\(folded(value))\n" }
    return text + "\n\(names(of: fields))\n\(payload)"
  }

  package static func signedNames(_ fields: [(name: String, value: String)]) -> String { names(of: inOrder(fields)) }

  private static func names(of fields: [(name: String, value: String)]) -> String {
    var names = ""
    for (name, _) in fields {
      if !names.isEmpty { names += ";" }
      names += name
    }
    return names
  }

  /// Sorts by name. Names are ASCII, so they are compared byte by byte.
  private static func inOrder(_ fields: [(name: String, value: String)]) -> [(name: String, value: String)] {
    fields.sorted { $0.name < $1.name }
  }

  package func stringToSign(_ canonicalRequest: String) -> String {
    [Self.algorithm, timestamp, scope, Digest.hex(of: Array(canonicalRequest.utf8), .sha256)].joined(separator: "\n")
  }

  /// The signature in hexadecimal digits.
  package static func sign(_ text: String, key: [UInt8]) -> String { Digest.hex(HMAC.sha256(text.utf8, key: key)) }

  /// Sorted by bytes; a parameter without a value gets an empty one.
  private static func canonicalQuery(_ query: String) -> String {
    if query.isEmpty { return "" }
    let items = query.split(separator: "&").map { item -> (name: String, value: String) in
      let name = item.prefix { $0 != "=" }
      return (String(name), String(item.dropFirst(name.count + 1)))
    }
    let sorted = items.sorted { a, b in
      a.name == b.name
        ? a.value.utf8.lexicographicallyPrecedes(b.value.utf8) : a.name.utf8.lexicographicallyPrecedes(b.name.utf8)
    }
    return sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
  }

  /// Trimmed, with each run of spaces as one space.
  private static func folded(_ value: String) -> String {
    if !value.utf8.contains(where: { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) { return value }
    return value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
  }
}
