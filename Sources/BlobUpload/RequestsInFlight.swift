import Blobs

/// Requests of an upload that an earlier process has left to the system, which sends them without it. A transport that
/// knows them answers the same request with their response.
package protocol RequestsInFlight: Sendable {
  /// The bytes of the source that a request appends to `session`; nil: there is no such request.
  func range(appendingTo session: UploadSession) -> Range<Int64>?
  /// Whether that request sends exactly the bytes of `body`, which has its range. If not, it is cancelled.
  func haveBytes(of body: BlobSlice) async throws(UploadError) -> Bool
}
