import BlobHTTP
import Blobs

/// Requests of an upload that an earlier process has left to the system, which sends them without it. A transport that
/// knows them answers the same request with their response.
package protocol RequestsInFlight: Sendable {
  /// The bytes of the source that a request appends to `session`; nil: there is no such request.
  func range(appendingTo session: UploadSession) -> Range<Int64>?
  /// Whether that request sends exactly the bytes of `body`, which has its range. If not, it is cancelled.
  func haveBytes(of body: BlobSlice) async throws(UploadError) -> Bool
}

extension UploadRun {
  /// The result of looking for a request in flight.
  enum InFlight {
    case none
    /// A request appends bytes from this offset on. The server has all bytes before it.
    case from(Int64)
    /// The request has sent other bytes, so the upload was given up.
    case givenUp
  }

  /// Looks for a request that still appends bytes to the session of an earlier run. The server is not asked how much it
  /// has while it receives them: it may no longer know the upload once it has all of them.
  func findInFlight(_ session: UploadSession) async throws(UploadError) -> InFlight {
    guard isResuming, doubted == nil, let requests = uploader.inFlight,
      let range = requests.range(appendingTo: session)
    else { return .none }
    let body = BlobSlice(
      trace(from: range.lowerBound), start: range.lowerBound, length: range.upperBound - range.lowerBound,
      validator: info.validator)
    if try await requests.haveBytes(of: body) {
      // Only reading can find the end of a source of unknown length, and the planned part may end elsewhere.
      return info.length == nil ? .none : .from(range.lowerBound)
    }
    await engine.discard(session, ledger)
    restart()
    return .givenUp
  }
}
