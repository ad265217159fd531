import BlobHTTP
import Blobs
import Synchronization

/// The folders of a WebDAV server that are known to exist, so that each is created once, and other known facts about
/// the server.
final class DavFolders: Sendable {
  private struct State {
    var known: Set<String> = []
    /// Folders whose absence made the server refuse a file, and that were then created.
    var missed: Set<String> = []
    var canMove = true
    var hasToldLeftover = false
  }
  private let state = Mutex(State())
  /// One call at a time, because otherwise many concurrent uploads would all create their common folder.
  private let turn = Gate(1)
  let conditions = DavConditions()

  /// Whether the server supports MOVE; true until it has refused one.
  var canMove: Bool { state.withLock { $0.canMove } }
  func noteNoMove() { state.withLock { $0.canMove = false } }

  /// Notes that a temporary file cannot be deleted. Returns whether it is the first one, which is reported to the user.
  func noteLeftover() -> Bool {
    state.withLock { state in
      defer { state.hasToldLeftover = true }
      return !state.hasToldLeftover
    }
  }

  /// Creates the folders between the endpoint's folder and the file. RFC 4918 §9.3.
  func make(for place: DavPlace, _ with: UploadContext) async throws(UploadError) {
    let folder = place.url.folder
    if folder.path == place.root.path || isKnown(folder) { return }
    try await make(folder, with)
  }

  /// Creates `folder` and its parent folders, even if it seemed to exist.
  func make(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    try await turn.pass { () async throws(UploadError) in try await makeNow(folder, with) }
  }

  /// Creates the folder for a body that is large or cannot be read again, before the body is sent there: a server may
  /// refuse it for a missing folder after its last byte. If the server does not create the folder, the response to the
  /// body decides.
  func makeAhead(_ folder: HTTPURL, for body: BlobSlice, _ with: UploadContext) async throws(UploadError) {
    guard body.length ?? .max > Self.small || !body.canBeReadTwice, !isKnown(folder) else { return }
    do throws(UploadError) {
      try await make(folder, with)
    } catch {
      if error.recovery != .giveUp || error.side == .cancelled { throw error }
    }
  }

  /// Bytes. To send a body of this size twice costs about as much as to ask for its folder first.
  static let small: Int64 = 1 << 20

  /// Called after a refusal that a missing folder may explain, such as a 500 from nginx: creates the folder. Returns
  /// whether it was missing, so that the file can be sent again. The server is asked once per folder; if it creates
  /// none, the refusal has another reason.
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

  /// Called if a known folder seems to be missing: the next `make` asks the server again.
  func forget(_ folder: HTTPURL) { state.withLock { _ = $0.known.remove(folder.path) } }

  private func makeNow(_ folder: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    if isKnown(folder) { return }
    var response = try await ask(folder, with)
    // The parent folder is missing; nginx correctly responds 409, other servers 404.
    if [404, 409].contains(response.status), let above = folder.above {
      try await makeNow(above, with)
      response = try await ask(folder, with)
    }
    guard response.isSuccess || response.status == 405 else {
      var error = UploadError(creating: HTTPRequest("MKCOL", folder), response)
      // The server may refuse only this folder.
      if error.recovery == .giveUp, response.status != 403 { error.side = .destination }
      // This 409 says nothing about the name. RFC 4918 §9.3.1.
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
  /// The parent folder; nil for the root.
  var above: HTTPURL? {
    path == "/" ? nil : resolve(String(path.dropLast()))?.folder
  }
}
