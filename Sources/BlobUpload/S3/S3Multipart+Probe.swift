import BlobHTTP
import Blobs

// Whether a bucket takes files at all.
extension S3Multipart {
  /// The id of an upload that no server has.
  private static let unknownUpload = "fullbore-probe"

  /// Asks whether objects can be made, and makes none: a part of an upload that the server does not have needs the same
  /// permission as any other part. Returns if they can be. `object`: where nothing is stored.
  package func probe(_ object: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    let upload = S3Upload(object: object, id: Self.unknownUpload)
    let request = HTTPRequest("PUT", upload.url(["partNumber": "1"]))
    let response = try await send(request, BlobSlice(DataSource([0])), with)
    if Self.problem(request, response) == nil { return }
    throw UploadError(request, response, s3: S3ErrorResponse(response), signer)
  }

  package static func isProbe(_ request: HTTPRequest) -> Bool {
    request.url.query?.contains("uploadId=\(unknownUpload)") ?? false
  }

  /// Why a response says that other requests would fail too, without a name or a secret in it; nil: it does not say so.
  package static func problem(_ request: HTTPRequest, _ response: HTTPResponse) -> String? {
    // Only known codes are general.
    if let refusal = S3ErrorResponse(response), refusal.isGeneral { return "the bucket refuses files: \(refusal.code)" }
    switch response.status {
    case 401, 403:
      return ["PUT", "POST"].contains(request.method) ? "the bucket refuses files: \(response.status)" : nil
    // A server that does not implement a condition is asked without it.
    case 501: return nil
    case 500...: return "the bucket answers \(response.status)"
    default: return nil
    }
  }
}
