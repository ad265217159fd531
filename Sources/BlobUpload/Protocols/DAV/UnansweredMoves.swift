import BlobHTTP

/// The temporary files of a WebDAV upload for which a MOVE that may replace a file was sent, and has no answer yet. Such a
/// MOVE may arrive late, for example from a proxy that held it back.
///
/// Some servers, such as those made with golang.org/x/net/webdav, delete the destination of a MOVE before they find out that
/// its source is gone. A late MOVE would then delete the file that a later try has put there. While the temporary file is still
/// there, the MOVE puts the same bytes in its place. So the temporary file stays until no MOVE can arrive any more.
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
  mutating func replace(with temporary: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    let name = leftovers.first { self.temporary($0) == temporary }
    if let name { unanswered.note(name) }
    with.opened(session)
    try await with.events.makeDurable()
    do throws(UploadError) {
      try await move(temporary, to: url, overwrites: true, with)
    } catch {
      if let name, !error.mayArriveLater { unanswered.remove(name) }
      throw error
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
