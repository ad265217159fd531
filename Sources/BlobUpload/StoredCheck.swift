import Blobs

/// Decides whether an upload counts as stored, for every protocol and every way in which an upload can end.
///
/// A server's response alone is not enough. It is compared with what the client knows: where the source ends, and how
/// many of its bytes were handed to connections.
struct StoredCheck: Sendable {
  let target: UploadTarget
  /// Length of the source in bytes; nil: its end has not been found yet.
  var length: Int64?
  /// Neither this run nor an earlier one handed a byte from this offset on to a connection; nil: an earlier run sent an
  /// unknown number of bytes.
  var sent: Int64?

  /// All bytes were handed to connections, so the server may have stored the whole file.
  var isSent: Bool { length.map { $0 <= sent ?? 0 } ?? false }

  /// Throws with `.restart` if the server cannot have the bytes that it reports.
  func check(_ result: UploadResult) throws(UploadError) {
    // The bytes at the server were compared with those of the source, so it does not matter which upload sent them.
    if result.isCompared { return }
    guard let length else {
      throw contradiction("the upload is complete\(count(result.length)), and was not told yet where it ends")
    }
    if let stored = result.length, stored != length {
      throw contradiction("the upload is complete with \(stored) bytes, and the source has \(length)")
    }
    if let sent, sent < length {
      throw contradiction("the upload is complete, and was sent \(sent) bytes of \(length)")
    }
  }

  /// Throws with `.restart` if the server reports bytes that were never sent.
  func check(held offset: Int64) throws(UploadError) {
    guard let sent, offset > sent else { return }
    throw contradiction("it holds \(offset) bytes, and was sent \(sent)")
  }

  private func count(_ bytes: Int64?) -> String { bytes.map { " with \($0) bytes" } ?? "" }

  private func contradiction(_ what: String) -> UploadError {
    UploadError(.restart, .file, "\(target.url): the server says that \(what): it cannot be trusted")
  }
}

extension UploadSession {
  /// The offset at which a source of unknown length ends. Recorded once it was found, before the server is informed.
  var sourceEnd: Int64? {
    get { state["end"].flatMap { Int64($0) } }
    set { state["end"] = newValue.map { String($0) } }
  }
}

extension UploadRun {
  /// Called after a request that sent at most `most` bytes from `offset` on: notes how many were handed to the
  /// connection.
  func noteSent(from offset: Int64, atMost most: Int64) {
    // A protocol may send a body twice, for example after a redirect or a failed precondition.
    let sent = max(tracker.handed, 0)
    failures.noteSent(sent)
    let count = min(sent, most)
    sentEnd = sentEnd.map { max($0, offset + count) }
  }

  /// Throws if the server accepts so few bytes per request that the file would need too many requests.
  func checkPartCount(_ next: Part) throws(UploadError) {
    var limits = uploader.destination.currentLimits
    if let session { limits.tighten(by: session.limits) }
    guard let most = limits.largest, most < UploadDestination.smallestBody else { return }
    let count = info.length.map { ($0 - next.start) / most } ?? Int64(next.number)
    if count <= UploadDestination.mostSmallBodies { return }
    throw UploadError(
      .giveUp, .file,
      "the server takes only \(most) bytes in one request (max-append-size), which would make more than "
        + "\(UploadDestination.mostSmallBodies) requests for this file; it must take more, or another protocol be named"
    )
  }

  /// Checks what the server reports about this upload.
  var storedCheck: StoredCheck {
    StoredCheck(target: target, length: length, sent: parts.map(\.bytes) ?? sentEnd)
  }
}
