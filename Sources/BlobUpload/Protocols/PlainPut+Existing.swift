import BlobHTTP
import Blobs
import Synchronization

/// Most servers replace the content of a name on PUT, and most ignore `If-None-Match`. RFC 9110 §9.3.4, §13.1.2.
extension PlainPut {
  /// Sends a PUT after a query found no file under the name. An earlier PUT of ours that was interrupted may have left
  /// the file or a part of it. After such a PUT, a file that is exactly a first part of ours is replaced. Other bytes
  /// come from another client, or from a server that transforms an incomplete body, and are not replaced. A refused PUT
  /// has left nothing.
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

  /// Success if the name has the same bytes as `body`; nil if it has no file, or a part of ours. Throws if it has other
  /// bytes.
  private func find(
    _ target: UploadTarget, _ body: BlobSlice, mayBeOurs: Bool, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult? {
    let there: NameInUse
    do throws(UploadError) {
      there = try await with.nameInUse(target.url, by: body, length: target.length, mayBeOurs: mayBeOurs)
    } catch {
      // A folder may be answered with a page that lists it.
      throw error.status == 409 ? await with.explained(error, at: target.url) : error
    }
    switch there {
    case .sameBytes: return UploadResult(location: target.url.description, isCompared: true)
    case .nothing, .beginning: return nil
    // The name may accept PUT only, for example as a presigned URL. The response to the PUT reports any other problem.
    case .hidden: return nil
    }
  }

  /// The fields of the response to OPTIONS if the server itself compares a body with the file under the name, and refuses
  /// other bytes, as Fullbore's own server does. nil: there is no evidence of that.
  func fieldsOfComparing(
    _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> HTTPHeaders? {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    guard let response = try await answer(to: request, with) else { return nil }
    if !response.refusesCredentials, let refusal = UploadError(asking: request, response) { throw refusal }
    guard response.isSuccess else { return nil }
    let fields = ["Tus-Version", "Upload-Limit", "Want-Content-Digest"]
    let compares =
      fields.allSatisfy { response.headers[$0] != nil } && response.headers.list("Allow").contains("PUT")
    return compares ? response.headers : nil
  }

  /// The response to a question about the server; nil: it gives none for `patience`. A server that cannot be reached says
  /// nothing about itself: throws, so that the caller asks again. One that closes the connection may have been stopped just
  /// now, also behind a proxy that still accepts connections.
  private func answer(to request: HTTPRequest, _ with: UploadContext) async throws(UploadError) -> HTTPResponse? {
    let end = ContinuousClock.now + patience
    var wait = Duration.milliseconds(100)
    while true {
      do throws(UploadError) {
        let response = try await with.send(request)
        // The server may be starting. One that always fails at this question may take files all the same.
        if response.status != 500 { return response }
        if ContinuousClock.now + wait > end { return nil }
      } catch {
        if error.isUnreachable || error.side == .cancelled { throw error }
        let code = (error.cause as? TransportError)?.code
        if code != .broken && code != .timeout || ContinuousClock.now + wait > end { return nil }
      }
      do { try await Task.sleep(for: wait) } catch { throw UploadError(.giveUp, .cancelled, "cancelled") }
      wait = min(wait * 2, .seconds(1))
    }
  }
}

extension UploadError {
  /// Whether a PUT with this error has stored nothing: it was refused, or no connection could be made. With 408, 502 or
  /// 504 a server or proxy timed out, and the server may have started to store the body.
  fileprivate var leavesNothing: Bool {
    guard let status else { return isUnreachable }
    return 300..<600 ~= status && ![408, 502, 504].contains(status)
  }
}

/// Names to which we sent a PUT that neither succeeded nor was refused: a file there may be a part of ours.
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

  /// Called when a file was stored completely. The server may treat all these URLs as the same name.
  func remove(_ name: FoldedName) { urls.withLock { $0[name] = nil } }
}
