import BlobCrypto
import BlobHTTP
import Blobs

/// `Content-Digest` fields of bodies, for servers that verify them. RFC 9530.
enum ContentDigest {
  /// Throws if the server does not ask for such digests: a server that ignores the field would verify nothing. `response`:
  /// to OPTIONS. Some servers always answer that with 500, and then ask for none; others may do so in passing.
  static func checkOffer(
    _ request: HTTPRequest, _ response: HTTPResponse, _ algorithm: Digest.Algorithm, at endpoint: HTTPURL
  ) throws(UploadError) {
    if response.status == 500 {
      var error = UploadError(request, response)
      error.message += "; --verify reads back what arrived, whatever the server offers"
      throw error
    }
    let wanted = StructuredField.integers(response.headers["Want-Content-Digest"]) ?? [:]
    let offered = DigestField.algorithms.filter { wanted[$0.key] ?? 0 > 0 }.map(\.algorithm)
    if offered.contains(algorithm) { return }
    let theirs = offered.isEmpty ? "none" : offered.map(\.name).joined(separator: ", ")
    throw UploadError(
      .giveUp, .destination,
      "\(endpoint): the checksum \(algorithm) was asked for; without tus the server compares \(theirs); "
        + "--verify reads back what arrived")
  }

  /// The field for a body, which is read for it; nil if no digest is needed or the body cannot be read twice.
  static func field(of body: BlobSlice?, _ algorithm: Digest.Algorithm?) async throws(UploadError) -> String? {
    guard let body, let algorithm, let key = DigestField.algorithms.first(where: { $0.algorithm == algorithm })?.key,
      let checksum = try await Tus(checksum: algorithm).uploadChecksum(of: body)
    else { return nil }
    return "\(key)=:\(checksum.dropFirst(algorithm.name.utf8.count + 1)):"
  }
}

extension HTTPResponse {
  /// The server received other bytes than those of the digest.
  var tellsOtherDigest: Bool {
    status == 400 && headers["Content-Type"]?.lowercased().hasPrefix("application/problem+json") == true
      && String(decoding: body.prefix(4096), as: UTF8.self).contains("#digest-mismatching-values\"")
  }
}
