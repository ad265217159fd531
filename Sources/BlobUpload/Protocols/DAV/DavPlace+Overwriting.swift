import BlobHTTP
import Blobs
import Synchronization

// Nothing is replaced without being asked to, whatever a server makes of conditions.
extension DavPlace {
  /// Where names cannot be changed: straight to the name, once it was found to hold nothing, or a part of this file that an
  /// earlier try has left. The condition `If-None-Match` is for another client that comes in between; some servers ignore it.
  mutating func putStraight(
    _ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let there: NameInUse = overwrites ? .nothing : try await look(for: body, with)
    if let found = try result(of: there) { return found }
    tries += 1
    wasSentStraight = true
    with.opened(session)
    try await with.events.makeDurable()
    var request = HTTPRequest("PUT", url, ["Content-Type": contentType])
    request.headers[ModificationTime.field] = modified
    if !overwrites, case .nothing = there { request.headers["If-None-Match"] = "*" }
    var response = try await with.sendOnce(&request, body)
    if [404, 409].contains(response.status) {
      try await folders.make(url.folder, with)
      response = try await with.sendOnce(&request, body)
    }
    if response.status == 412, !overwrites { return try await taken(body, with) }
    guard response.saysStored else { throw refusal(request, response) }
    let headers = try await look(at: url, body, with)
    // An earlier try may have written to the same file at the same time.
    if tries > 1, body.source.access == .random { try await with.compareAgain(body, with: url) }
    return result(headers)
  }

  /// Whether the server keeps a file that has the name which another is moved to, as `Overwrite: F` has it: tried with two
  /// empty files of our own, whose names `clear` knows. nil: that cannot be found out. RFC 4918 §10.6.
  mutating func tryCondition(_ with: UploadContext) async throws(UploadError) -> Bool? {
    let (source, target) = (try await begin(with), try await begin(with))
    for place in [source, target] {
      var request = HTTPRequest("PUT", place, ["Content-Type": contentType])
      guard try await with.sendOnce(&request, BlobSlice(DataSource([]), length: 0)).saysStored else { return nil }
    }
    do {
      try await move(source, to: target, overwrites: false, with)
      return false
    } catch {
      if error.side == .cancelled { throw error }
      return error.status == 412 ? true : nil
    }
  }
}

/// Whether a server heeds `Overwrite: F`. One that ignores it replaces the file that has the name.
///
/// Until a server is known to heed it, each name is asked for first (HEAD). It becomes known by a trial, which takes five small
/// requests, and is made once as many names were asked for as it costs.
final class DavConditions: Sendable {
  private struct State {
    var questions = 0
    var isTried = false
    var areHeeded = false
  }
  private static let worthTrying = 6
  private let state = Mutex(State())

  var areHeeded: Bool { state.withLock { $0.areHeeded } }

  /// A name is to be asked for. Returns whether the caller is to try the condition.
  func noteQuestion() -> Bool {
    state.withLock { state in
      state.questions += 1
      if state.isTried || state.questions < Self.worthTrying { return false }
      state.isTried = true
      return true
    }
  }

  func noteHeeded() { state.withLock { $0.areHeeded = true } }
}
