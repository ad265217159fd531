import BlobHTTP
import Blobs

// Deletes the temporary files of an upload. An upload ends only once they are deleted, or the server has permanently
// refused to delete them. Until then the journal contains their names.
extension DavPlace {
  /// Ends an upload whose file has its name, and retries a failed DELETE. Throws if the temporary files cannot be
  /// deleted now. `finishStored` then resumes the session that was passed to `opened`. A temporary file whose MOVE may still
  /// arrive stays, and is the `leftover` of the result.
  mutating func finish(
    _ result: UploadResult, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    if leftovers.isEmpty { return result }
    // A later run does not read a source of unknown length again.
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
    tell(refused, folders, with)
    leftovers = leftovers.filter { unanswered.wait(for: $0) != nil }
    stored = nil
    var result = result
    if !leftovers.isEmpty { result.leftover = session }
    return result
  }

  /// Ends an upload whose file already had its name when an earlier run ended. Throws with `.resync` if it no longer
  /// has it, so that it is sent again.
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
      // Without a response, the state of the file is unknown.
      if error.recovery == .resync, !(error.cause is TransportError) {
        stored = nil
        with.opened(session)
      }
      throw error
    }
    return try await finish(result(headers), folders, with)
  }

  /// Called after a final failure; retries a failed DELETE. Temporary files that cannot be deleted now stay in the
  /// journal, for the next push or `abort`.
  mutating func clearAfterFailure(_ folders: DavFolders, _ with: UploadContext) async {
    let place = self
    var refused: Refused?
    do throws(UploadError) {
      try await with.server.patiently("\(url)") { () async throws(UploadError) in refused = try await place.clear(with)
      }
    } catch {
      return
    }
    tell(refused, folders, with)
  }

  /// A temporary file that exists on the server, and that the server refuses to delete.
  typealias Refused = (temporary: HTTPURL, error: UploadError)

  /// Deletes every temporary name that may exist, except those whose MOVE may still arrive. Returns the first that the
  /// server permanently refuses to delete. Throws temporary errors.
  func clear(_ with: UploadContext) async throws(UploadError) -> Refused? {
    var (refused, passing): (Refused?, UploadError?)
    for name in leftovers.reversed() where unanswered.wait(for: name) == nil {
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

  /// DELETE. Succeeds if the name does not exist, even if the server always refuses the method.
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

  /// Reports the first temporary file that the server does not delete to the user.
  private func tell(_ refused: Refused?, _ folders: DavFolders, _ with: UploadContext) {
    guard let refused, folders.noteLeftover() else { return }
    with.server.notice(
      "\(refused.temporary): this temporary file stays at the server, which does not delete it (\(refused.error.message)). "
        + "There may be more of them, named .fullbore-….tmp: delete them there. put+ before the URL makes none")
  }
}

extension JournalEntry {
  /// The file has its name at the server; only temporary files remain to be deleted.
  public var isStored: Bool { session?.state["stored"] != nil }

  /// The upload's data at the server are temporary files next to the file's own name.
  public var hasTemporaryFiles: Bool {
    KnownProtocols.named(destination.protocolName)?.traits.leavesTemporaryFiles == true
  }
}
