import BlobHTTP
import Blobs

// The temporary files that an upload leaves beside the file. An upload ends only once they are deleted, or once the server
// has refused to delete them for good: until then the journal knows their names.
extension DavPlace {
  /// Ends an upload whose file has its name. A DELETE that fails is tried again. Throws where the temporary files could not be
  /// deleted now: the session, which `opened` was called with, is then gone on with by `finishStored`.
  mutating func finish(
    _ result: UploadResult, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    if leftovers.isEmpty { return result }
    // A source of unknown length is not read again by a later run.
    if length != nil {
      stored = result.state["version"] ?? ""
      with.opened(session)
    }
    let place = self
    var refused: Refused?
    do throws(UploadError) {
      try await with.server.patiently("\(url)") { () async throws(UploadError) in refused = try await place.clear(with)
      }
    } catch {
      var error = error
      if error.side != .cancelled {
        error.message += "; \(url) is there, and only this temporary file is left beside it"
      }
      throw error
    }
    leftovers = []
    tell(refused, folders, with)
    return result
  }

  /// Ends an upload whose file had its name when an earlier run ended. Throws with `.resync` where it does not have it any
  /// more: then it is sent again.
  mutating func finishStored(
    _ whole: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let headers: HTTPHeaders
    do throws(UploadError) {
      headers = try await look(at: url, whole, with)
      if let stored, let before = DavVersion(journaled: "#\(stored)"), DavVersion(headers).isChanged(since: before) {
        throw UploadError(.resync, .file, "HEAD \(url): it was changed since it was sent")
      }
    } catch {
      // Nothing is known where no answer came.
      if error.recovery == .resync, !(error.cause is TransportError) {
        stored = nil
        with.opened(session)
      }
      throw error
    }
    return try await finish(result(headers), folders, with)
  }

  /// The upload cannot be done. What cannot be deleted now stays in the journal, for the next push or `abort`.
  mutating func clearAfterFailure(_ folders: DavFolders, _ with: UploadContext) async {
    guard let refused = try? await clear(with) else { return }
    tell(refused, folders, with)
  }

  /// A temporary file that is at the server, and that the server does not delete.
  typealias Refused = (temporary: HTTPURL, error: UploadError)

  /// Deletes every temporary name that may exist. Returns the first that the server refuses to delete for good. Throws an
  /// error that may pass.
  func clear(_ with: UploadContext) async throws(UploadError) -> Refused? {
    var (refused, passing): (Refused?, UploadError?)
    for name in leftovers.reversed() {
      let temporary = temporary(name)
      do throws(UploadError) {
        try await delete(temporary, with)
      } catch {
        if error.status == nil { throw error }
        if error.recovery == .giveUp { refused = refused ?? (temporary, error) } else { passing = passing ?? error }
      }
    }
    if let passing { throw passing }
    return refused
  }

  /// DELETE. A name that is not there is a success, also where the server refuses the method whatever is there.
  func delete(_ temporary: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", temporary)
    let response = try await with.send(request)
    if response.saysDeleted { return }
    let error = UploadError(deleting: request, response)
    if error.recovery == .giveUp {
      let there = try await with.send(HTTPRequest("HEAD", temporary))
      if [404, 410].contains(there.status) { return }
    }
    throw error
  }

  /// The user is told of the first temporary file that the server does not delete.
  private func tell(_ refused: Refused?, _ folders: DavFolders, _ with: UploadContext) {
    guard let refused, folders.noteLeftover() else { return }
    with.server.notice(
      "\(refused.temporary): this temporary file stays at the server, which does not delete it (\(refused.error.message)). "
        + "There may be more of them, named .fullbore-….tmp: delete them there. put+ before the URL makes none")
  }
}

extension JournalEntry {
  /// The file has its name at the server, and only temporary files beside it are left to be deleted.
  public var isStored: Bool { session?.state["stored"] != nil }

  /// The upload is a WebDAV one, and what the server has of it are temporary files beside the file's own name.
  public var hasTemporaryFiles: Bool { destination.protocolName == "dav" }
}
