import BlobHTTP
import Blobs

/// The temporary files of a WebDAV upload for which a MOVE that may replace a file was sent, and has no answer yet. Such a
/// MOVE may arrive late, for example from a proxy that held it back.
///
/// Some servers, such as those made with golang.org/x/net/webdav, delete the destination of a MOVE before they find out that
/// its source is gone. A late MOVE would then delete the file that a later try has put there. While the temporary file is still
/// there, the MOVE puts the same bytes in its place. So the temporary file stays until no MOVE can arrive any more. An upload
/// of another version to the same name puts its own bytes into it first.
struct UnansweredMoves: Sendable {
  /// The unique parts of the temporary names, each with the time of its MOVE in seconds since 1970.
  private var times: [String: Int64] = [:]

  /// In seconds. The timeouts of servers and proxies are shorter.
  static let longestDelay: Int64 = 3600

  init() {}

  /// Parses `text`; what is damaged is left out.
  init(_ text: String?) {
    for word in text?.split(separator: " ") ?? [] {
      let parts = word.split(separator: "@")
      if parts.count == 2, let time = Int64(parts[1]) { times[String(parts[0])] = time }
    }
  }

  /// For the journal; nil: there are none.
  var text: String? {
    times.isEmpty ? nil : times.sorted { $0.key < $1.key }.map { "\($0.key)@\($0.value)" }.joined(separator: " ")
  }

  mutating func note(_ name: String) { times[name] = currentSeconds() }
  mutating func remove(_ name: String) { times[name] = nil }

  /// Seconds until the temporary file may be deleted; nil: it may be deleted now. A time in the future, after the clock was
  /// set back, counts as now.
  func wait(for name: String) -> Int64? {
    guard let time = times[name] else { return nil }
    let age = max(0, currentSeconds().subtractingReportingOverflow(time).partialValue)
    return age < Self.longestDelay ? Self.longestDelay - age : nil
  }
}

// MOVE that may replace a file.
extension DavPlace {
  /// MOVE with `Overwrite: T`. The journal has it before it is sent, so that a run after a SIGKILL knows of it, too.
  mutating func replace(
    _ place: HTTPURL, with temporary: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) {
    let name = leftovers.first { self.temporary($0) == temporary }
    if let name { unanswered.note(name) }
    with.opened(session)
    try await with.events.makeDurable()
    do throws(UploadError) {
      try await move(temporary, to: place, overwrites: true, with)
    } catch {
      if let name, !error.mayArriveLater { unanswered.remove(name) }
      throw error
    }
  }

  /// Puts `body` in place of the temporary files of other versions that a MOVE to this name may still publish. A late MOVE
  /// then gives the name the same bytes as this upload. Each file is replaced by a MOVE, since a part of a PUT could be
  /// published too.
  ///
  /// To delete these files instead is no help: see `UnansweredMoves`.
  mutating func replaceOlderVersions(
    by body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) {
    guard overwrites, let journal = with.server.journal, let entry = with.entry else { return }
    let sessions: [UploadSession]
    do { sessions = try await journal.sessions(at: url.normalized.description, except: entry) } catch {
      throw UploadError(journal: error)
    }
    for session in sessions {
      // A damaged session has no temporary files that are known.
      guard let older = try? DavPlace(session), older.url.normalized.text == url.normalized.text else { continue }
      for name in older.leftovers where older.unanswered.wait(for: name) != nil {
        let late = older.temporary(name)
        do throws(UploadError) {
          let temporary = try await putAside(body, folders, with)
          try await replace(late, with: temporary, with)
          forget(temporary)
        } catch {
          var error = error
          error.message +=
            "; this was to replace \(late), which is of an older version: a MOVE of it to \(url) had no answer and may still arrive"
          throw error
        }
      }
    }
  }

  /// The temporary name whose MOVE may still arrive, and the longest time in seconds until none can; nil: there is none.
  var awaited: (temporary: HTTPURL, seconds: Int64)? {
    let waits = leftovers.compactMap { name in unanswered.wait(for: name).map { (temporary(name), $0) } }
    return waits.max { $0.1 < $1.1 }
  }
}

extension UploadError {
  /// Whether the request of this error may still arrive at the server: it has no response, or that of a proxy.
  fileprivate var mayArriveLater: Bool {
    status.map { $0 > 501 && $0 != 507 } ?? !isUnreachable
  }
}
