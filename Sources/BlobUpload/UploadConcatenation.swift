import BlobHTTP

/// Makes one file of several uploads, so that the parts of a file can be sent at the same time, each as an upload of its
/// own. The engine plans, sends and deletes the parts.
public protocol UploadConcatenation: Sendable {
  /// The protocol for the upload of one part. Its sessions have the part's URL as `UploadSession.state["url"]`.
  var ofParts: any UploadProtocol { get }

  /// Asks the server to concatenate complete parts, in this order, and returns the URL of the new upload. A second call
  /// may create a second upload, or return the same URL.
  func concatenate(
    _ parts: [HTTPURL], as target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL

  /// Whether an upload has all its bytes. Concatenation may take some time. Throws with `.restart` if the server does
  /// not know the upload.
  func isWhole(_ upload: HTTPURL, length: Int64, _ with: UploadContext) async throws(UploadError) -> Bool
}
