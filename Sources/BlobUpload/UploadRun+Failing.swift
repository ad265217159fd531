extension UploadRun {
  /// The server wants to go on from `offset`, which the source cannot give any more.
  func lost(from offset: Int64) -> UploadError {
    // A server that has never vouched for more has lost nothing: what was under way when it broke off did not arrive.
    guard best <= offset, let interruption else {
      return source.lost(from: offset, cause: self.interruption)
    }
    return source.lost("\(interruption.message); it cannot go on from byte \(offset)", cause: interruption)
  }

  /// The server answered with success to `sent` bytes, and holds no more than the `offset` bytes that it held before.
  func keepsNothing(of sent: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server was sent \(sent) bytes, and still says that it holds \(offset): it keeps nothing of what "
        + "it is sent. Another protocol may do: put+ or resumable+ before the URL")
  }

  /// The server answered with success to `sent` bytes, and kept so few of them that the file would be sent without end.
  func keepsLittle(_ kept: Int64, of sent: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server kept \(kept) of the \(sent) bytes that it was sent from byte \(offset) on. A smaller "
        + "--part-size, or another protocol, may do: put+ or resumable+ before the URL")
  }

  /// Deletes what the server holds of an upload that has failed for good, where no later run could go on with it: of a
  /// source that is read once and whose version cannot be told, as a pipe. Where that fails, it is in the journal, for `abort`.
  func giveUp(after error: UploadError) async {
    guard source.isReadOnce, info.validator == nil, error.side != .cancelled, !error.isUnreachable,
      let session = tracker.session ?? session
    else { return }
    // Without a refusal all of it may be stored by now.
    let isSent = storedCheck.length.map { $0 <= sentEnd ?? 0 } ?? false
    if isSent, !(400..<500 ~= error.status ?? 0) { return }
    if await uploader.discard(session) { ledger?.restarted() }
  }
}
