extension UploadRun {
  /// The server wants to go on from `offset`, which the source cannot give any more.
  func lost(from offset: Int64) -> UploadError {
    // A server that has never vouched for more has lost nothing: what was under way when it broke off did not arrive.
    guard best <= offset, let interruption else {
      return source.lost(from: offset, cause: self.interruption)
    }
    return source.lost("\(interruption.message); it cannot go on from byte \(offset)", cause: interruption)
  }

  /// Deletes what the server holds of an upload that has failed for good, where no later run could go on with it: of a
  /// source that is read once and whose version cannot be told, as a pipe. Where that fails, the server lets it expire.
  func giveUp(after error: UploadError) async {
    guard source.isReadOnce, info.validator == nil, error.side != .cancelled, !error.isUnreachable,
      let session = opened.withLock({ $0 }) ?? session
    else { return }
    // Without a refusal all of it may be stored by now.
    let isSent = storedCheck.length.map { $0 <= sentEnd ?? 0 } ?? false
    if isSent, !(400..<500 ~= error.status ?? 0) { return }
    await uploader.discard(session)
    ledger?.restarted()
  }
}
