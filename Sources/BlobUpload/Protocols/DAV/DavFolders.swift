import BlobHTTP
import Synchronization

/// The folders of a WebDAV server that are known to be there, so that each is made once; and what else is known of it.
final class DavFolders: Sendable {
  private struct State {
    var known: Set<String> = []
    /// Folders that files were refused for, and that were made then.
    var missed: Set<String> = []
    var canMove = true
    var hasToldLeftover = false
  }
  private let state = Mutex(State())
  /// One at a time, or many files at once would all make the folder that they share.
  private let turn = Gate(1)

  /// Whether the server takes MOVE; true until it has refused one.
  var canMove: Bool { state.withLock { $0.canMove } }
  func noteNoMove() { state.withLock { $0.canMove = false } }

  /// A temporary file cannot be deleted. Returns whether that is the first one, which the user is told of.
  func noteLeftover() -> Bool {
    state.withLock { state in
      defer { state.hasToldLeftover = true }
      return !state.hasToldLeftover
    }
  }

  /// Makes the folders between the endpoint's and the file. RFC 4918 §9.3.
  func make(for place: DavPlace, _ with: UploadContext) async throws(UploadError) {
    let folder = place.url.folder
    if folder.path == place.root.path || isKnown(folder) { return }
    try await make(folder, with)
  }

  /// Makes `folder`, and those above it, though it was thought to be there.
  func make(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    try await turn.pass { () async throws(UploadError) in try await makeNow(folder, with) }
  }

  /// After a refusal that a missing folder may be the reason for, as the 500 of nginx: makes the folder. Returns whether it
  /// had been missing, so that the file can be sent again. The server is asked once for each folder; where it makes none,
  /// the refusal has another reason.
  func makeMissing(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) -> Bool {
    try await turn.pass { () async throws(UploadError) in
      if !isKnown(folder) {
        do throws(UploadError) {
          try await makeNow(folder, with)
        } catch {
          guard error.recovery == .giveUp, error.side != .cancelled else { throw error }
          state.withLock { _ = $0.known.insert(folder.path) }
        }
      }
      return state.withLock { $0.missed.contains(folder.path) }
    }
  }

  /// A folder that was thought to be there seems to be missing: the next `make` asks the server again.
  func forget(_ folder: HTTPURL) { state.withLock { _ = $0.known.remove(folder.path) } }

  private func makeNow(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    if isKnown(folder) { return }
    var response = try await ask(folder, with)
    // The one above it is missing; nginx says 409 as it should, others 404.
    if [404, 409].contains(response.status), let above = folder.above {
      try await makeNow(above, with)
      response = try await ask(folder, with)
    }
    guard response.isSuccess || response.status == 405 else {
      var error = UploadError(creating: HTTPRequest("MKCOL", folder), response)
      // The server may refuse this folder alone.
      if error.recovery == .giveUp, response.status != 403 { error.side = .destination }
      // 409 is no word about the name here. RFC 4918 §9.3.1.
      if response.status == 409 {
        error.status = nil
        error.message = "MKCOL \(folder): 409 (the folder that it is to be in is not there)"
      }
      throw error
    }
    state.withLock { state in
      state.known.insert(folder.path)
      if response.isSuccess { state.missed.insert(folder.path) }
    }
  }

  private func ask(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) -> HTTPResponse {
    try await with.send(HTTPRequest("MKCOL", folder))
  }

  private func isKnown(_ folder: HTTPURL) -> Bool { state.withLock { $0.known.contains(folder.path) } }
}

extension HTTPURL {
  /// The folder that this folder is in; nil for the root.
  fileprivate var above: HTTPURL? {
    path == "/" ? nil : resolve(String(path.dropLast()))?.folder
  }
}
