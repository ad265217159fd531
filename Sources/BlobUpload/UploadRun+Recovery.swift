import BlobHTTP
import Blobs

// What follows an error.
extension UploadRun {
  /// Sets the stage for the next step and waits, or throws for good.
  func recover(from error: UploadError) async throws(UploadError) {
    if error.recovery == .rephrase {
      guard bounds.allowsChange() else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
      await rememberOverride()
      // A request that was refused for its form has changed nothing at the server.
      if let offset { progress.settle(at: offset) } else if session == nil { progress.restart() }
      measures = measures || uploader.destination.digestsAhead
      return
    }
    if error.status != 404 { unknownCreations.noteAnswer() }
    // Without an answer, or with one of a proxy, the server may still be at work on what it was sent.
    if (error.status ?? 500) >= 500 { mayBeReceiving = true }
    let wasSending = offset != nil
    offset = nil
    // The newest session: it has what the server was told last, as where the source ends, what is to be made of parts,
    // or under which temporary name a try was begun.
    session = tracker.session ?? session
    // Who does not know chunks says so with one of these; 422 is what frameworks say that check for a length.
    if session != nil, !measures, info.length == nil, let status = error.status, [411, 422, 501].contains(status) {
      measures = true
      return
    }
    if case .shrink(let most) = error.recovery {
      try await shrink(error, to: most)
      return
    }
    // With `.restart` the upload is gone or complete. Where the server may have gone on with earlier bytes, these explain
    // the 403, and a new upload shows whether the server refuses the file.
    if wasSending, error.status == 403,
      error.recovery == .giveUp || error.recovery == .restart && attemptedLast && tookBody && !mayBeReceiving
    {
      // The server refuses what it was sent. An upload that has all its bytes there would count as stored in the next run.
      if attemptedLast, tookBody { await giveUpSession() }
      throw uploader.destination.acquaintance.judge(refusal: error.final)
    }
    if error.recovery == .giveUp { throw uploader.destination.acquaintance.judge(refusal: error) }
    if error.recovery == .restart { try await restart(after: error, wasSending: wasSending) }
    if session == nil {
      // No answer came to a creation, some of whose body was sent.
      if error.cause is TransportError, tracker.handed > 0 { createsEmpty = true }
      if source.first > 0, await !source.rewind() {
        throw source.lost("\(error.message); it cannot begin anew", cause: error)
      }
      progress.restart()
    }
    var failures = failures
    defer { self.failures = failures }
    try await uploader.wait(after: error, &failures, atLeast: restarts, "\(target.path)")
  }

  /// The upload is gone, as `error` says: the next one begins with the first byte. Throws where that would be in vain.
  ///
  /// `wasSending`: `error` is the answer to bytes of an upload that the server knew a moment ago.
  private func restart(after error: UploadError, wasSending: Bool) async throws(UploadError) {
    if unknownCreations.isOneTooMany(error) { throw unknownCreations.complaint(error, session) }
    // Numbered parts are sent in any order, and not counted by offset.
    let hasSent = parts == nil ? sentEnd ?? 0 > 0 : progress.hasSent
    guard bounds.allowsRestart(hasSent: hasSent, kept: best) else {
      throw uploader.destination.acquaintance.judge(refusal: error.afterTooManyRestarts)
    }
    // The server may still hold it, since only the request for its bytes was answered so.
    if wasSending, let status = error.status, [403, 404, 410].contains(status) { await giveUpSession() }
    // The server knows the upload, and says of it what cannot be: it stays there until it is deleted.
    if error.status == nil, session != nil {
      ledger?.abandoned()
      engine.server.notice("\(error.message): it is sent anew")
    }
    restart()
  }

  /// Has the journal know whether PATCH must go as POST to this host, where that was found out just now.
  func rememberOverride() async {
    let destination = uploader.destination
    guard let isNeeded = destination.acquaintance.methods.takeNews() else { return }
    // What is lost here is learned again.
    try? await uploader.journal?.keepOverride(isNeeded, at: destination.endpoint.origin)
  }

  /// The body that was sent last was handed to the connection to its end, as far as that is known.
  private var tookBody: Bool {
    let count = tracker.handed
    return attempted == .max ? count > 0 : count >= attempted
  }

  /// Deletes the upload at the server. Until that has answered, the journal knows it as one that is left there.
  func giveUpSession() async {
    guard let session else { return }
    await engine.discard(session, ledger)
  }

  private func shrink(_ error: UploadError, to most: Int64?) async throws(UploadError) {
    let isCut = session != nil || uploader.destination.limits.firstPart != .max
    // A server that told no limits may know nothing of parts: the whole goes with its creation, and cannot be cut.
    guard isCut || most != nil, bounds.allowsSmallerBody(than: attempted),
      let size = uploader.destination.shrink(below: attempted, to: most)
    else { throw uploader.destination.acquaintance.judge(refusal: error.final) }
    if !isCut { takesParts = true }
    // What is lost here is learned again at the next refusal.
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
