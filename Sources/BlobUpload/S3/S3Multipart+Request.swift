import BlobHTTP
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension S3Multipart {
  /// Signs and sends a request. Sends it again once after the clock was adjusted, once after an expired token was
  /// renewed, and up to twice if another request has changed the signer's settings since it was signed.
  func send(
    _ request: HTTPRequest, _ body: BlobSlice?, prepare: Exchange.Preparation? = nil, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse {
    var (mayAdjust, mayRenew, outdated) = (true, true, 0)
    while true {
      let counter = SentCounter()
      let version = signer.version
      var exchange = with.counting(counter)
      exchange.prepare = prepare
      let response = try await with.exchange(request, body, exchange)
      // A HEAD request that finds no object is no error, so it need not wait for the bucket check.
      if response.isSuccess || request.method == "HEAD" && response.status == 404 { return response }
      try await question?.answered()
      if signer.version != version, outdated < 2, Self.outdated.contains(response.status) {
        outdated += 1
      } else if mayAdjust, let date = clockIsWrong(request, response), signer.adjust(to: date, since: version) {
        mayAdjust = false
      } else if mayRenew, S3ErrorResponse(response)?.code == "ExpiredToken", signer.renew(since: version) {
        mayRenew = false
      } else {
        return response
      }
      with.takeBack(counter)
    }
  }

  /// The server's time, if the clock difference is why it rejects the request. A response to HEAD has no error code.
  private func clockIsWrong(_ request: HTTPRequest, _ response: HTTPResponse) -> Int64? {
    guard response.status == 403, let date = response.headers["Date"].flatMap({ HTTPDate.seconds($0) }) else {
      return nil
    }
    if S3ErrorResponse(response)?.code == "RequestTimeTooSkewed" { return date }
    return request.method == "HEAD" && signer.distance(to: date) > 300 ? date : nil
  }
}

extension S3Multipart {
  /// Statuses for requests signed for another region, with another token, or with a wrong clock.
  private static let outdated = [301, 307, 400, 401, 403]

  var signature: @Sendable (inout HTTPRequest) -> Void {
    { [signer, bucketPath] request in
      S3RequestFields.removeMisplaced(from: &request, bucketPath: bucketPath)
      signer.sign(&request)
    }
  }
}

func bytes(base64 text: String) -> [UInt8]? { Data(base64Encoded: text).map { Array($0) } }
