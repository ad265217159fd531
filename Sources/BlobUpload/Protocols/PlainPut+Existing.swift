import BlobHTTP
import Blobs
import Synchronization

/// Most servers that take a PUT replace what the name holds, and most heed no `If-None-Match`. RFC 9110 §9.3.4, §13.1.2.
extension PlainPut {
  /// Success if the name holds the very bytes of `body`; nil if it holds nothing. Throws if it holds others.
  func find(
    _ target: UploadTarget, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult? {
    let request = HTTPRequest("HEAD", target.url)
    let response = try await with.send(request)
    guard response.status == 200 else {
      let error = UploadError(request, response)
      // Any other answer says nothing about the name; the answer to the PUT says what is wrong.
      if case .retry = error.recovery { throw error }
      return nil
    }
    let size = response.headers.bytes("Content-Length")
    if let size, let length = target.length, size != length {
      throw UploadError(
        .giveUp, .file, "\(target.url): another file of \(size) bytes has that name, and this one has \(length)",
        status: 409)
    }
    guard target.length != nil else {
      throw UploadError(
        .giveUp, .file, "\(target.url): there is a file of that name, with which a stream cannot be compared",
        status: 409)
    }
    do {
      try await with.compare(body, with: target.url)
    } catch {
      // A connection that broke says nothing about the bytes.
      guard error.recovery == .giveUp, error.side == .file, error.status == nil else { throw error }
      throw UploadError(.giveUp, .file, "\(target.url): another file has that name (\(error.message))", status: 409)
    }
    return UploadResult(location: target.url.description, isCompared: true)
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
