import BlobHTTP
import Blobs
import Synchronization

/// Most servers that take a PUT replace what the name holds, and most heed no `If-None-Match`. RFC 9110 §9.3.4, §13.1.2.
extension PlainPut {
  /// PUT, once the name was found to hold nothing. A PUT of ours that broke may have left the file, or a part of it: after one,
  /// a part is replaced, which has the first bytes of the file and nothing else. What has other bytes was stored by another
  /// client meanwhile, or by a server that makes something else of a part, and stays. One that was refused has left nothing.
  func storeUnlessTaken(
    _ target: UploadTarget, _ name: FoldedName, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let wasBegun = begun.contains(target.url, name)
    if let found = try await find(target, body, mayBeOurs: wasBegun, with) { return found }
    begun.insert(target.url, name)
    do throws(UploadError) {
      let result = try await store(target, body, with)
      begun.remove(name)
      return result
    } catch {
      if !wasBegun, error.leavesNothing { begun.remove(target.url, name) }
      throw error
    }
  }

  /// Success if the name holds the very bytes of `body`; nil if it holds nothing, or a part of ours. Throws if it holds
  /// others.
  private func find(
    _ target: UploadTarget, _ body: BlobSlice, mayBeOurs: Bool, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult? {
    switch try await with.nameInUse(target.url, by: body, length: target.length, mayBeOurs: mayBeOurs) {
    case .sameBytes: return UploadResult(location: target.url.description, isCompared: true)
    case .nothing, .beginning: return nil
    // A place that takes PUT alone, for example a presigned URL. The answer to the PUT says what else is wrong.
    case .hidden: return nil
    }
  }

  /// Whether the server compares what comes with what the name holds, and refuses other bytes, as Fullbore's own does.
  /// What it is not known to do, it does not.
  func comparesItself(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> Bool {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    guard let response = try? await with.send(request) else { return false }
    if response.status == 421 { throw UploadError(request, response) }
    guard response.isSuccess else { return false }
    let fields = ["Tus-Version", "Upload-Limit", "Want-Content-Digest"]
    return fields.allSatisfy { response.headers[$0] != nil } && response.headers.list("Allow").contains("PUT")
  }
}

extension UploadError {
  /// A PUT that ended so has left nothing at the server: it was refused, or no connection could be made for it. Those that
  /// answer 408, 502 and 504 have waited in vain, and the server may have begun to store what it was sent.
  fileprivate var leavesNothing: Bool {
    guard let status else { return isUnreachable }
    return 300..<600 ~= status && ![408, 502, 504].contains(status)
  }
}

/// Names that a PUT of ours was sent to that was neither answered with success nor refused: what is there may be a part of
/// ours.
final class BegunPuts: Sendable {
  private let urls = Mutex<[FoldedName: Set<HTTPURL>]>([:])

  func contains(_ url: HTTPURL, _ name: FoldedName) -> Bool { urls.withLock { $0[name]?.contains(url) == true } }
  func insert(_ url: HTTPURL, _ name: FoldedName) { urls.withLock { _ = $0[name, default: []].insert(url) } }

  func remove(_ url: HTTPURL, _ name: FoldedName) {
    urls.withLock { urls in
      urls[name]?.remove(url)
      if urls[name]?.isEmpty == true { urls[name] = nil }
    }
  }

  /// A file was stored whole, and a server may have given it all of these names.
  func remove(_ name: FoldedName) { urls.withLock { $0[name] = nil } }
}
