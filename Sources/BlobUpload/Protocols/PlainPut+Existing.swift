import BlobHTTP
import Blobs
import Synchronization

/// Most servers that take a PUT replace what the name holds, and most heed no `If-None-Match`. RFC 9110 §9.3.4, §13.1.2.
extension PlainPut {
  /// Success if the name holds the very bytes of `body`; nil if it holds nothing. Throws if it holds others.
  func find(
    _ target: UploadTarget, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult? {
    switch try await with.nameInUse(target.url, by: body, length: target.length) {
    case .sameBytes: return UploadResult(location: target.url.description, isCompared: true)
    case .nothing: return nil
    // A place that takes PUT alone, for example a presigned URL. The answer to the PUT says what else is wrong.
    case .hidden: return nil
    }
  }

  /// Whether the server compares what comes with what the name holds, and refuses other bytes, as Fullbore's own does.
  /// What it is not known to do, it does not.
  func comparesItself(_ target: UploadTarget, _ with: UploadContext) async -> Bool {
    guard let response = try? await with.send(HTTPRequest("OPTIONS", target.endpoint)), response.isSuccess else {
      return false
    }
    let fields = ["Tus-Version", "Upload-Limit", "Want-Content-Digest"]
    return fields.allSatisfy { response.headers[$0] != nil } && response.headers.list("Allow").contains("PUT")
  }
}

/// Names that a PUT of ours has been sent to and not answered with success: what is there may be a part of ours.
final class BegunPuts: Sendable {
  private let urls = Mutex<Set<HTTPURL>>([])
  func contains(_ url: HTTPURL) -> Bool { urls.withLock { $0.contains(url) } }
  func insert(_ url: HTTPURL) { urls.withLock { _ = $0.insert(url) } }
  func remove(_ url: HTTPURL) { urls.withLock { _ = $0.remove(url) } }
}
