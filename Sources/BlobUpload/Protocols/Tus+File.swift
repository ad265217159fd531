import BlobHTTP
import Blobs
import Synchronization

// Where the bytes of a finished upload are: some servers give it the name that was told, others its upload's URL only.
extension Tus {
  /// Whether the file is there, and not only the upload that brought it.
  ///
  /// The name is asked first (HEAD), then the upload's URL, as a file (GET). A server that shows the bytes under neither
  /// is believed when its upload is complete, unless it says where the file is (`Content-Location`).
  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    guard let upload = uploadURL(location, of: target) else { return try await with.isThere(target) }
    var isMissing: Bool?
    if with.uploadURLs.areFiles != true {
      let request = HTTPRequest("HEAD", target.url)
      let response = try await with.send(request)
      if response.isSuccess, target.length == nil || response.headers.bytes("Content-Length") == target.length {
        return true
      }
      guard response.isSuccess || [403, 404, 405, 410].contains(response.status) else {
        throw UploadError(request, response)
      }
      isMissing = !response.isSuccess
    }
    switch try await with.lengthByGet(of: upload, expecting: target.length) {
    case .found(let length):
      with.uploadURLs.note(areFiles: true)
      return target.length == nil || length == target.length
    case .missing where isMissing == nil: return try await with.isThere(target)
    case .missing: return false
    case .hidden, .noContent: return try await isStored(target, isMissing: isMissing ?? true, upload, with)
    }
  }

  /// Of a server that does not give out uploads: what its upload says of itself.
  private func isStored(
    _ target: UploadTarget, isMissing: Bool, _ upload: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    var request = HTTPRequest("HEAD", upload, ["Tus-Resumable": Self.version])
    let response = try await with.send(following: &request)
    guard response.isSuccess, response.headers.bytes("Upload-Offset") == target.length else { return false }
    guard let place = response.headers["Content-Location"].flatMap({ request.url.resolve($0) }),
      place.origin == target.endpoint.origin
    else {
      // Another length under the name is no proof that the file is somewhere else.
      return isMissing
    }
    if place.normalized == target.url.normalized { return false }
    var file = target
    file.url = place
    return try await with.isThere(file)
  }

  /// The upload's own URL, where the server gives out the file there.
  public func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    guard let upload = uploadURL(location, of: target), try await isFile(upload, target, with) else {
      return target.url
    }
    return upload
  }

  /// Whether the server gives out the bytes under the upload's own URL; asked once for each host.
  private func isFile(
    _ upload: HTTPURL, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    if let areFiles = with.uploadURLs.areFiles { return areFiles }
    guard case .found(let length) = try await with.lengthByGet(of: upload, expecting: target.length) else {
      with.uploadURLs.note(areFiles: false)
      return false
    }
    // Something else may be shown there, like a page about the upload; an empty page looks like an empty file.
    let isFile = target.length == nil || length == nil || length == target.length
    if isFile, length != 0 { with.uploadURLs.note(areFiles: true) }
    return isFile
  }

  /// An upload's own URL, where the server has told one that we may ask.
  func uploadURL(_ location: String?, of target: UploadTarget) -> HTTPURL? {
    guard let url = location.flatMap({ HTTPURL($0) }), url.origin == target.endpoint.origin else { return nil }
    return url.normalized == target.url.normalized ? nil : url
  }
}

/// Whether a host gives out the bytes of finished uploads under the uploads' own URLs, once that was seen.
final class UploadURLs: Sendable {
  private let state = Mutex<Bool?>(nil)

  /// nil: not known yet.
  var areFiles: Bool? { state.withLock { $0 } }

  func note(areFiles: Bool) { state.withLock { $0 = areFiles } }
}
