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

  /// The error if the server responded with success to `count` bytes, and still has only the `offset` bytes that it had
  /// before.
  func keepsNothing(of count: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server was sent \(count) bytes, and still says that it holds \(offset): it keeps nothing of what "
        + "it is sent. Another protocol may do: put+ or resumable+ before the URL")
  }

  /// The error if the server responded with success to `count` bytes, but stored so few that the upload would hardly
  /// progress.
  func keepsLittle(_ kept: Int64, of count: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server kept \(kept) of the \(count) bytes that it was sent from byte \(offset) on. A smaller "
        + "--part-size, or another protocol, may do: put+ or resumable+ before the URL")
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
