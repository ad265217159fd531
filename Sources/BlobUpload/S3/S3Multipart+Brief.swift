import BlobHTTP
import Blobs

/// Small objects, for the `BriefChain`.
extension S3Multipart: OneRequestProtocol {
  /// Longer ones are read for their checksums on threads that may take their time.
  private static let longest: Int64 = 256 << 10

  func request(bringing target: UploadTarget, _ body: BlobSlice) -> HTTPRequest? {
    guard vouching == .header, let length = body.length, length <= Self.longest, (try? check(target)) != nil else {
      return nil
    }
    var request = put(target)
    if mayBeIdle(target.url) {
      guard let heedsChecksums = acquaintance.heedsChecksums else { return nil }
      if !heedsChecksums {
        request.headers["x-amz-content-sha256"] = S3Signature.unsignedPayload
        return request
      }
    }
    let signs = signsBodies(at: target.url)
    let wanted = S3Body.wanted(options.checksum, signs: signs)
    guard let values = try? digests(of: body, wanted, Cancellation()) else { return nil }
    request.headers.add(contentsOf: S3Body.fields(values, options.checksum, signs: signs))
    return request
  }

  func result(of response: HTTPResponse, to request: HTTPRequest, for target: UploadTarget) -> UploadResult? {
    guard response.isSuccess else { return nil }
    let (told, echo) = (request.headers[options.checksum.s3Field], response.headers[options.checksum.s3Field])
    if told != nil { acquaintance.note(echo: echo) }
    return echo == nil || echo == told ? stored(target, response) : nil
  }

  /// What it was signed with may be outdated since, and what is to be said of it depends on that.
  func isPlain(_ response: HTTPResponse) -> Bool { !Self.outdated.contains(response.status) }

  /// Answers to what was signed for another region, with another token or by another clock.
  static let outdated = [301, 307, 400, 401, 403]
}
