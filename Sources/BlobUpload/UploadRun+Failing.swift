extension UploadRun {
  /// The error if the server needs the bytes from `offset` on, and the source can no longer deliver them.
  func lost(from offset: Int64) -> UploadError {
    // If the server never confirmed more bytes, it has lost none: the bytes of the interrupted request did not arrive.
    guard best <= offset, let interruption else {
      return source.lost(from: offset, cause: self.interruption)
    }
    return source.lost("\(interruption.message); it cannot go on from byte \(offset)", cause: interruption)
  }

  /// The error if the server responded with success to `sent` bytes, and still has only the `offset` bytes that it had
  /// before.
  func keepsNothing(of sent: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server was sent \(sent) bytes, and still says that it holds \(offset): it keeps nothing of what "
        + "it is sent. Another protocol may do: put+ or resumable+ before the URL")
  }

  /// The error if the server responded with success to `sent` bytes, but stored so few that the upload would hardly
  /// progress.
  func keepsLittle(_ kept: Int64, of sent: Int64, from offset: Int64) -> UploadError {
    UploadError(
      .resync, .file,
      "\(target.url): the server kept \(kept) of the \(sent) bytes that it was sent from byte \(offset) on. A smaller "
        + "--part-size, or another protocol, may do: put+ or resumable+ before the URL")
  }

  /// Deletes the server's data of a finally failed upload that no later run could resume: its source is read only once
  /// and has no version or is sent in numbered parts, for example a pipe, or the server has nothing of it but temporary
  /// files. If the deletion fails, the upload stays in the journal, for `abort`.
  func giveUp(after error: UploadError) async {
    guard error.side != .cancelled, !error.isUnreachable, let session = tracker.session ?? session else { return }
    guard source.isReadOnce, info.validator == nil || pipe != nil else {
      // A later run begins the file anew. It deletes the temporary files again, because a request may still be under way.
      let areLeft = uploader.destination.traits.leavesTemporaryFiles && interruption?.recovery != .giveUp
      if areLeft, best == 0, error.status != nil { await uploader.discard(session) }
      return
    }
    // Without a refusal, the server may have stored the whole file by now. Numbered parts are not the file: they are
    // deleted unless the journal holds the session for the next run, which can identify the file.
    let mayBeStored = parts == nil || ledger != nil && interruption?.recovery != .restart
    if storedCheck.isSent, mayBeStored, !(400..<500 ~= error.status ?? 0) { return }
    if parts == nil ? await uploader.discard(session) : await deleteParts(of: session) { ledger?.restarted() }
  }

  /// Deletes numbered parts, which the server would keep forever. false: the deletion should be tried again.
  private func deleteParts(of session: UploadSession) async -> Bool {
    var uploader = uploader
    (uploader.retry.retries, uploader.retry.outage) = (min(uploader.retry.retries, 2), nil)
    do throws(UploadError) {
      try await uploader.patiently("\(target.path)") { [uploadProtocol, context] () async throws(UploadError) in
        try await uploadProtocol.abort(session, context)
      }
    } catch {
      return false
    }
    return true
  }
}
