import BlobHTTP
import Blobs

// Recovery from errors, and the end of an upload that has failed.
extension UploadRun {
  /// Prepares the next step and waits before it, or throws the final error.
  func recover(from error: UploadError) async throws(UploadError) {
    if error.recovery == .adapt {
      guard recovery.bounds.allowsChange() else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
      await rememberOverride()
      // A request that was refused for its form has changed nothing on the server.
      if let offset = transfer.offset { progress.settle(at: offset) } else if session == nil { progress.restart() }
      planning.measures = planning.measures || uploader.destination.digestsAhead
      return
    }
    if error.status != 404 { recovery.unknownCreations.noteAnswer() }
    let isSourceLost = error.mayPass(for: source.source, info)
    // Without a response, or with the response of a proxy, the server may still process the bytes that it was sent.
    if (error.status ?? 500) >= 500 { transfer.mayBeReceiving = true }
    let wasSending = transfer.offset != nil
    // Parts of a pipe cannot be sent again once the server has confirmed them, so it is not asked which of them it has.
    if setup.pipe == nil { transfer.offset = nil }
    // The newest session contains what the server was sent last, for example the end of the source, the upload to join
    // from parts, or the temporary name of a try.
    session = tracker.session ?? session
    // Servers without chunked support respond with one of these statuses; 422 comes from frameworks that require a
    // length.
    if session != nil, !planning.measures, info.length == nil, [411, 422, 501].contains(error.status) {
      planning.measures = true
      return
    }
    if case .shrink(let most) = error.recovery {
      try await shrink(error, to: most)
      return
    }
    // With `.restart` the upload no longer exists or is complete. If the server may have processed earlier bytes, these
    // explain the 403, and a new upload shows whether the server refuses the file.
    let isWhole = transfer.attemptedLast && transfer.tookBody(tracker.handed)
    if wasSending, error.status == 403,
      error.recovery == .giveUp || error.recovery == .restart && isWhole && !transfer.mayBeReceiving
    {
      // The server refuses the bytes it was sent. An upload with all its bytes there would count as stored in the next
      // run.
      if isWhole { await giveUpSession() }
      throw uploader.destination.acquaintance.judge(refusal: error.final)
    }
    if let earlier, earlier.doubted == nil, error.refusesQuestion {
      try await replaceEarlier(after: error)
      return
    }
    if error.recovery == .giveUp, !isSourceLost {
      throw uploader.destination.acquaintance.judge(refusal: error)
    }
    if error.recovery == .restart {
      // A pipe is not opened again.
      if setup.pipe != nil, source.first > 0 { throw error.withoutRestart }
      try await restart(after: error, wasSending: wasSending)
    }
    if session == nil {
      // The request that creates an upload got no response after some of its body was sent.
      if error.cause is TransportError || isSourceLost, tracker.handed > 0 { recovery.createsEmpty = true }
      if source.first > 0, await !source.rewind() {
        throw source.lost("\(error.message); it cannot begin anew", cause: error)
      }
      progress.restart()
    }
    var failures = recovery.failures
    defer { recovery.failures = failures }
    do throws(UploadError) {
      try await uploader.wait(after: error, &failures, atLeast: recovery.restarts, "\(target.path)")
    } catch {
      throw earlier != nil && error.status == 500 ? error.ofEarlierUpload : error
    }
  }

  /// The result if the file that has changed has the bytes of this one, as when the response to an earlier request of this
  /// upload was lost. nil: it has other bytes, or the server does not tell.
  func storedBefore() async throws(UploadError) -> UploadResult? {
    // The other members of a group would wait for this one.
    guard target.group == nil, let length, let whole = context.whole, whole.canBeReadTwice else { return nil }
    do throws(UploadError) {
      guard try await uploadProtocol.hasSameBytes(as: whole, target, context) == true else { return nil }
    } catch {
      // The next creation of the upload gets the same error.
      if error.side == .cancelled || error.side == .source { throw error }
      return nil
    }
    return UploadResult(location: target.url.description, length: length, isCompared: true)
  }

  /// Starts a new upload, because the file that it was to replace has changed.
  func createAgain() async throws(UploadError) {
    if tracker.session ?? session != nil { restart() }
    if source.first > 0, await !source.rewind() {
      throw source.lost(
        "the file that it was to replace has changed; it cannot begin anew", cause: recovery.interruption)
    }
    progress.restart()
  }

  /// Starts a new upload, because the server refuses to tell how much it has of the one of an earlier run. The journal
  /// keeps that one until the server has opened another: a proxy may refuse everything for a while.
  private func replaceEarlier(after error: UploadError) async throws(UploadError) {
    if source.first > 0, await !source.rewind() {
      throw source.lost("\(error.message); it cannot begin anew", cause: error)
    }
    engine.server.notice("\(error.message): this is about the upload that an earlier run began; it is sent anew")
    restart(replaces: true)
    progress.restart()
  }

  /// Starts a new upload from the first byte, because `error` says that the old one no longer exists. Throws if a new
  /// upload would be useless.
  ///
  /// `wasSending`: `error` is the response to bytes for an upload that the server knew a moment ago.
  private func restart(after error: UploadError, wasSending: Bool) async throws(UploadError) {
    if recovery.unknownCreations.isOneTooMany(error) { throw recovery.unknownCreations.complaint(error, session) }
    // Numbered parts are sent in any order, so no offset counts them.
    let hasSent = planning.numbered == nil ? transfer.sentEnd ?? 0 > 0 : progress.hasSent
    // A server that was killed before it acknowledged anything may have kept no record. The lost connection was already
    // counted as a failure.
    let isLostWithConnection =
      planning.numbered == nil && transfer.mayBeReceiving && !wasSending && transfer.best == 0
    guard isLostWithConnection || recovery.bounds.allowsRestart(hasSent: hasSent, kept: transfer.best) else {
      throw uploader.destination.acquaintance.judge(refusal: error.afterTooManyRestarts)
    }
    // The server may still have the upload, since only the request with its bytes got this response.
    if wasSending, let status = error.status, [403, 404, 410].contains(status) { await giveUpSession() }
    // The server knows the upload, but reports an impossible state: the upload stays there until it is deleted.
    if error.status == nil, session != nil {
      ledger?.abandoned()
      engine.server.notice("\(error.message): it is sent anew")
    }
    restart()
  }

  /// Records in the journal whether PATCH must be sent as POST to this host, if that was just found out.
  func rememberOverride() async {
    let destination = uploader.destination
    guard let isNeeded = destination.acquaintance.methods.takeNews() else { return }
    // Losing this value is harmless: the next run finds it out again.
    try? await uploader.journal?.hosts.keepOverride(isNeeded, at: destination.endpoint.origin)
  }

  /// Deletes the upload on the server. Until the server has responded, the journal keeps it as a leftover.
  func giveUpSession() async {
    guard let session else { return }
    await engine.discard(session, ledger)
  }

  private func shrink(_ error: UploadError, to most: Int64?) async throws(UploadError) {
    let isCut = session != nil || uploader.destination.limits.firstPart != .max
    // A server that reported no limits may not support parts: the whole file is sent with the creation, and cannot be
    // split.
    guard isCut || most != nil, recovery.bounds.allowsSmallerBody(than: transfer.attempted),
      let size = uploader.destination.shrink(below: transfer.attempted, to: most)
    else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
    if !isCut { recovery.takesParts = true }
    // Losing this value is harmless: the next refusal reports it again.
    try? await uploader.journal?.hosts.keepLargestBody(size, at: uploader.destination.endpoint.origin)
    if session == nil { progress.restart() }
  }

  /// `replaces`: the journal keeps the old upload until there is a new one.
  func restart(replaces: Bool = false) {
    recovery.restarts += 1
    if !replaces {
      ledger?.restarted()
      settleDoubt()
    }
    (session, earlier, traced) = (nil, nil, nil)
    transfer = TransferState()
    planning.numbered = nil
    tracker.restart(replaces: replaces)
  }

  /// The error if the server needs the bytes from `offset` on, and the source can no longer deliver them.
  func lost(from offset: Int64) -> UploadError {
    // If the server never confirmed more bytes, it has lost none: the bytes of the interrupted request did not arrive.
    guard transfer.best <= offset, let interruption = recovery.interruption else {
      return source.lost(from: offset, cause: recovery.interruption)
    }
    return source.lost("\(interruption.message); it cannot go on from byte \(offset)", cause: interruption)
  }

  /// Deletes the server's data of a finally failed upload that no later run could resume: its source is read only once
  /// and has no version or is sent in numbered parts, for example a pipe, or the server has nothing of it but temporary
  /// files. If the deletion fails, the upload stays in the journal, for `abort`.
  func giveUp(after error: UploadError) async {
    guard error.side != .cancelled, !error.isUnreachable, let session = tracker.session ?? session else { return }
    guard source.isReadOnce, info.validator == nil || setup.pipe != nil else {
      // A later run begins the file anew. It deletes the temporary files again, because a request may still be under way.
      let areLeft = uploader.destination.traits.leavesTemporaryFiles && recovery.interruption?.recovery != .giveUp
      if areLeft, transfer.best == 0, error.status != nil { await uploader.discard(session) }
      return
    }
    // Without a refusal, the server may have stored the whole file by now. Numbered parts are not the file: they are
    // deleted unless the journal holds the session for the next run, which can identify the file.
    let isNumbered = planning.numbered != nil
    let mayBeStored = !isNumbered || ledger != nil && recovery.interruption?.recovery != .restart
    if storedCheck.isSent, mayBeStored, !(400..<500 ~= error.status ?? 0) { return }
    if isNumbered ? await deleteParts(of: session) : await uploader.discard(session) { ledger?.restarted() }
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
