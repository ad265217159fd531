import BlobHTTP
import Blobs

// Recovery from errors.
extension UploadRun {
  /// Prepares the next step and waits before it, or throws the final error.
  func recover(from error: UploadError) async throws(UploadError) {
    if error.recovery == .rephrase {
      guard bounds.allowsChange() else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
      await rememberOverride()
      // A request that was refused for its form has changed nothing on the server.
      if let offset { progress.settle(at: offset) } else if session == nil { progress.restart() }
      measures = measures || uploader.destination.digestsAhead
      return
    }
    if error.status != 404 { unknownCreations.noteAnswer() }
    let isSourceLost = error.mayPass(for: source.source, info)
    // Without a response, or with the response of a proxy, the server may still process the bytes that it was sent.
    if (error.status ?? 500) >= 500 { mayBeReceiving = true }
    let wasSending = offset != nil
    offset = nil
    // The newest session contains what the server was sent last, for example the end of the source, the upload to join
    // from parts, or the temporary name of a try.
    session = tracker.session ?? session
    // Servers without chunked support respond with one of these statuses; 422 comes from frameworks that require a
    // length.
    if session != nil, !measures, info.length == nil, let status = error.status, [411, 422, 501].contains(status) {
      measures = true
      return
    }
    if case .shrink(let most) = error.recovery {
      try await shrink(error, to: most)
      return
    }
    // With `.restart` the upload no longer exists or is complete. If the server may have processed earlier bytes, these
    // explain the 403, and a new upload shows whether the server refuses the file.
    if wasSending, error.status == 403,
      error.recovery == .giveUp || error.recovery == .restart && attemptedLast && tookBody && !mayBeReceiving
    {
      // The server refuses the bytes it was sent. An upload with all its bytes there would count as stored in the next
      // run.
      if attemptedLast, tookBody { await giveUpSession() }
      throw uploader.destination.acquaintance.judge(refusal: error.final)
    }
    if error.recovery == .giveUp, !isSourceLost {
      throw uploader.destination.acquaintance.judge(refusal: error)
    }
    if error.recovery == .restart {
      // A pipe is not opened again.
      if pipe != nil, source.first > 0 { throw error.withoutRestart }
      try await restart(after: error, wasSending: wasSending)
    }
    if session == nil {
      // The request that creates an upload got no response after some of its body was sent.
      if error.cause is TransportError || isSourceLost, tracker.handed > 0 { createsEmpty = true }
      if source.first > 0, await !source.rewind() {
        throw source.lost("\(error.message); it cannot begin anew", cause: error)
      }
      progress.restart()
    }
    var failures = failures
    defer { self.failures = failures }
    try await uploader.wait(after: error, &failures, atLeast: restarts, "\(target.path)")
  }

  /// Starts a new upload from the first byte, because `error` says that the old one no longer exists. Throws if a new
  /// upload would be useless.
  ///
  /// `wasSending`: `error` is the response to bytes for an upload that the server knew a moment ago.
  private func restart(after error: UploadError, wasSending: Bool) async throws(UploadError) {
    if unknownCreations.isOneTooMany(error) { throw unknownCreations.complaint(error, session) }
    // Numbered parts are sent in any order, so no offset counts them.
    let hasSent = parts == nil ? sentEnd ?? 0 > 0 : progress.hasSent
    // A server that was killed before it acknowledged anything may have kept no record. That the connection was lost
    // counts as a failure already.
    let isLostWithConnection = parts == nil && mayBeReceiving && !wasSending && best == 0
    guard isLostWithConnection || bounds.allowsRestart(hasSent: hasSent, kept: best) else {
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
    try? await uploader.journal?.keepOverride(isNeeded, at: destination.endpoint.origin)
  }

  /// The last body was handed to the connection completely, as far as that is known.
  private var tookBody: Bool {
    let count = tracker.handed
    return attempted == .max ? count > 0 : count >= attempted
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
    guard isCut || most != nil, bounds.allowsSmallerBody(than: attempted),
      let size = uploader.destination.shrink(below: attempted, to: most)
    else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
    if !isCut { takesParts = true }
    // Losing this value is harmless: the next refusal reports it again.
    try? await uploader.journal?.keepLargestBody(size, at: uploader.destination.endpoint.origin)
    if session == nil { progress.restart() }
  }

  func restart() {
    restarts += 1
    ledger?.restarted()
    settleDoubt()
    session = nil
    mayBeReceiving = false
    tracker.restart()
    parts = nil
    traced = nil
    isResuming = false
    (best, sentEnd) = (0, 0)
  }
}
