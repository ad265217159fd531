import BlobHTTP
import Blobs
import Synchronization

// Replaces no file unless requested, even on servers that ignore conditions.
extension DavPlace {
  /// For servers without MOVE: sends the file directly to its name, after a query found no file there, or a part of
  /// this file from an earlier try. `If-None-Match` protects against another client in between; some servers ignore it.
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
    if overwrites {
      // A request that arrives late must not replace a newer version.
      let replaced = try await with.replacedFile(at: url)
      request.replace(only: replaced)
      // Fullbore's own server, among others, replaces a file only for a request that says so.
      if replaced == .unversioned { request.headers["If-Match"] = "*" }
    }
    try await folders.makeAhead(url.folder, for: body, with)
    var response = try await with.sendOnce(&request, body)
    if [404, 409].contains(response.status) {
      try await folders.make(url.folder, with)
      response = try await with.sendOnce(&request, body)
    }
    if response.status == 412 {
      if !overwrites { return try await taken(body, with) }
      // Another client has made or deleted the file meanwhile.
      var error = refusal(request, response)
      error.recovery = .resync
      throw error
    }
    // A PUT never replaces a folder. RFC 4918 §9.7.2.
    guard response.saysStored else { throw await with.explained(refusal(request, response), at: url) }
    let headers = try await look(at: url, body, with)
    // An earlier try may have written to the same file concurrently.
    if tries > 1, body.source.access == .random { try await with.compareAgain(body, with: url) }
    return result(headers)
  }

  /// Whether the server implements `Overwrite: F`, so that MOVE replaces no file: tried with two empty files of our
  /// own, whose names `clear` knows. nil: this cannot be found out. RFC 4918 §10.6.
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

/// Whether a server implements `Overwrite: F`. A server that ignores it replaces the file under the name.
///
/// Until this is known, each name is queried first (HEAD, or PROPFIND if the file may be replaced). A trial finds it out;
/// it takes five small requests, and starts once as many names were queried as it costs.
final class DavConditions: Sendable {
  private struct State {
    var questions = 0
    var isTried = false
    var areHeeded = false
    var wasFile = false
  }
  private static let worthTrying = 6
  private let state = Mutex(State())

  var areHeeded: Bool { state.withLock { $0.areHeeded } }

  /// Counts a query for a name. Returns whether the caller should try the condition.
  func noteQuestion() -> Bool {
    state.withLock { state in
      state.questions += 1
      if state.isTried || state.questions < Self.worthTrying { return false }
      state.isTried = true
      return true
    }
  }

  func noteHeeded() { state.withLock { $0.areHeeded = true } }

  /// Whether the next file is likely to replace one, as the last one did or would have done. Then a query for the name is
  /// better than a MOVE that the server refuses.
  var expectsFile: Bool { state.withLock { $0.wasFile } }
  func note(wasFile: Bool) { state.withLock { $0.wasFile = wasFile } }
}
