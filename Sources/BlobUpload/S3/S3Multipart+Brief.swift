import BlobHTTP
import Blobs

/// Small objects, for the `BriefChain`.
extension S3Multipart: OneRequestProtocol {
  /// Bytes of the largest object that is read for its checksum by the connection that sends it.
  private static let longest: Int64 = 256 << 10

  func request(bringing target: UploadTarget, _ body: BlobSlice) -> HTTPRequest? {
    guard vouching == .header, !asksFirst(overwriting: target.overwrite), let length = body.length,
      length <= Self.longest, (try? check(target)) != nil
    else {
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
    return request
  }

  func preparation(of request: HTTPRequest, _ body: BlobSlice) -> Exchange.Preparation? {
    if request.headers["x-amz-content-sha256"] != nil { return nil }
    let signs = signsBodies(at: request.url)
    return { [checksum = options.checksum] request, cancel throws(BlobError) in
      let values = try digests(of: body, S3Body.wanted(checksum, signs: signs), cancel)
      request.headers.add(contentsOf: S3Body.fields(values, checksum, signs: signs))
    }
  }

  func result(of response: HTTPResponse, to request: HTTPRequest, for target: UploadTarget) -> UploadResult? {
    guard response.saysStored, (try? checkStored(request, response)) != nil,
      !target.overwrite || question?.mayBeRefused != true
    else { return nil }
    let (told, echo) = (request.headers[options.checksum.s3Field], response.headers[options.checksum.s3Field])
    if told != nil { acquaintance.note(echo: echo) }
    return echo == nil || echo == told ? stored(target, response) : nil
  }

  /// What it was signed with may be outdated since, and what is to be said of it depends on that.
  func isPlain(_ response: HTTPResponse) -> Bool { !Self.outdated.contains(response.status) }

  /// Answers to what was signed for another region, with another token or by another clock.
  static let outdated = [301, 307, 400, 401, 403]
}
