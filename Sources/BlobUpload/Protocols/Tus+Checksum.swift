import BlobHTTP
import Blobs

/// tus 1.0 §Checksum.
extension UploadProtocol {
  /// Every body is read for its digest before it is sent.
  var digestsBodies: Bool {
    ((self as? Tus)?.checksum ?? (self as? IETFResumable)?.checksum ?? (self as? PlainPut)?.checksum) != nil
  }
}

extension Tus {
  /// A part is read once for its digest and once to be sent: bounded, what was read is still in the system's cache.
  static let usualChecked: Int64 = 8 << 20

  /// Throws when a checksum is wanted that the server does not offer.
  func checkOffer(_ headers: HTTPHeaders, at endpoint: HTTPURL) throws(UploadError) {
    guard let checksum else { return }
    let offered = headers.list("Tus-Extension").contains("checksum") ? headers.list("Tus-Checksum-Algorithm") : []
    if offered.contains(checksum.name) { return }
    let ours = Digest.Algorithm.all.map(\.name).joined(separator: ", ")
    let theirs = offered.isEmpty ? "none" : offered.joined(separator: ", ")
    throw UploadError(
      .giveUp, .destination,
      "\(endpoint): the checksum \(checksum) was asked for, of \(ours); the server offers \(theirs)")
  }

  /// The field for a body, which is read for it; nil when none is wanted or the body cannot be read twice.
  func uploadChecksum(of body: BlobSlice) async throws(UploadError) -> String? {
    guard let checksum, body.canBeReadTwice else { return nil }
    return "\(checksum) \(base64(try await digests(of: body, [checksum])[0]))"
  }
}
