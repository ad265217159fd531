import BlobHTTP
import Blobs
import Synchronization

// Finds the URL of a finished upload's bytes: some servers store them under the given name, others only under the
// upload's URL.
extension Tus {
  /// Whether the file exists, and not only the upload that created it.
  ///
  /// Queries the name first (HEAD), then the upload's URL, as a file (GET). A server that returns the bytes under
  /// neither is believed if its upload is complete, unless it names another URL for the file (`Content-Location`).
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

  /// Checks the state of the upload, for a server that does not return uploads as files.
  private func isStored(
    _ target: UploadTarget, isMissing: Bool, _ upload: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    var request = HTTPRequest("HEAD", upload, ["Tus-Resumable": Self.version])
    let response = try await with.send(following: &request)
    guard response.isSuccess, response.headers.bytes("Upload-Offset") == target.length else { return false }
    guard let place = response.headers["Content-Location"].flatMap({ request.url.resolve($0) }),
      place.origin == target.endpoint.origin
    else {
      // Another length under the name does not prove that the file is somewhere else.
      return isMissing
    }
    if place.normalized == target.url.normalized { return false }
    var file = target
    file.url = place
    return try await with.isThere(file)
  }

  /// The upload's own URL if the server returns the file there; otherwise the target's URL.
  public func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    guard let upload = uploadURL(location, of: target), try await isFile(upload, target, with) else {
      return target.url
    }
    return upload
  }

  /// Whether the server returns the bytes under the upload's own URL; queried once per host.
  private func isFile(
    _ upload: HTTPURL, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    if let areFiles = with.uploadURLs.areFiles { return areFiles }
    guard case .found(let length) = try await with.lengthByGet(of: upload, expecting: target.length) else {
      with.uploadURLs.note(areFiles: false)
      return false
    }
    // The URL may show something else, such as a page about the upload; an empty page looks like an empty file.
    let isFile = target.length == nil || length == nil || length == target.length
    if isFile, length != 0 { with.uploadURLs.note(areFiles: true) }
    return isFile
  }

  /// Only Fullbore's server, the one that publishes groups, knows of files that an upload replaces. Other servers keep
  /// each upload under a URL of its own.
  func replacedFile(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> ReplacedFile {
    publishesGroups ? try await with.replacedFile(at: url) : .unknown
  }

  /// An upload's own URL, if the server has reported one at the endpoint's origin.
  func uploadURL(_ location: String?, of target: UploadTarget) -> HTTPURL? {
    guard let url = location.flatMap({ HTTPURL($0) }), url.origin == target.endpoint.origin else { return nil }
    return url.normalized == target.url.normalized ? nil : url
  }
}

/// Whether a host returns the bytes of finished uploads under the uploads' own URLs, once this is known.
final class UploadURLs: Sendable {
  private let state = Mutex<Bool?>(nil)

  /// nil: not known yet.
  var areFiles: Bool? { state.withLock { $0 } }

  func note(areFiles: Bool) { state.withLock { $0 = areFiles } }
}
