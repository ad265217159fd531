import BlobHTTP
import Blobs

extension Uploader {
  /// Counts `error` as a failure, and waits for the delay of the policy. Throws `error` after too many failures, and an
  /// error with side `.cancelled` that names `what` if the task is cancelled meanwhile.
  ///
  /// `least`: minimum number of failures, known from elsewhere.
  func wait(
    after error: UploadError, _ failures: inout FailureCount, atLeast least: Int = 0, _ what: String
  ) async throws(UploadError) {
    var policy = retry
    let (isReal, hasAccepted) = (destination.acquaintance.contact.isReal, destination.acquaintance.contact.hasAccepted)
    // A destination that was never reached most likely has a wrong URL: report that soon, unless a number was given.
    if error.isUnreachable, !isReal, policy.outage != nil { policy.retries = min(policy.retries, 1) }
    var asked: Duration?
    if case .retry(let after) = error.recovery { asked = after }
    var random = SystemRandomNumberGenerator()
    let isSilence = failures.isSilence(error, responses: destination.acquaintance.contact.responses)
    // The server answers other requests: it does not want this file, and another try has not changed that.
    let isOfFile = failures.isAnsweredElsewhere && (error.cause as? TransportError)?.isUnanswered == true
    if isSilence, hasAccepted, !isOfFile, failures.total >= policy.retries {
      failures.isAnsweredElsewhere = await answersOtherRequests()
    }
    let isOutage =
      error.isUnreachable && isReal || (error.saysUnavailable || isSilence && !isOfFile) && hasAccepted
      || error.isOfLostSource
    let least = isOfFile ? policy.retries + 1 : least
    guard
      let wait = failures.delay(policy, isOutage: isOutage, asked: asked, atLeast: least, using: &random)
    else { throw destination.acquaintance.judge(exhausted: error.after(failures)) }
    retrying?(error, wait)
    do {
      try await sleep(wait, untilAnswered: error.isUnreachable && failures.isHostSilent)
    } catch {
      throw UploadError(.giveUp, .cancelled, "\(what): cancelled")
    }
  }

  /// Sleeps for `wait`. `untilAnswered`: ends early, after a second or more, once the destination has responded to any
  /// request. The outage that was waited for is over then, so the file need not wait for the rest of its own delay.
  private func sleep(_ wait: Duration, untilAnswered: Bool) async throws {
    let responses = destination.acquaintance.contact.responses
    var left = wait
    repeat {
      let step = untilAnswered ? min(left, .seconds(1)) : left
      try await clock.sleep(for: step)
      left -= step
      if untilAnswered, destination.acquaintance.contact.responses != responses { return }
    } while left > .zero
  }

  /// Whether the destination gives any response to a request that is not for the file: a server, or a program before it,
  /// may close every connection that asks for one name.
  private func answersOtherRequests() async -> Bool {
    let before = destination.acquaintance.contact.responses
    // An error counts as no response, unless it is one.
    _ = try? await context().send(HTTPRequest("OPTIONS", destination.endpoint))
    return destination.acquaintance.contact.responses != before
  }

  /// Repeats `ask` until it succeeds, or throws an error that retries cannot resolve.
  func patiently<Answer>(
    _ what: String, _ ask: () async throws(UploadError) -> Answer
  ) async throws(UploadError) -> Answer {
    var failures = FailureCount()
    return try await repeating(ask) { error async throws(UploadError) in
      try await wait(after: error, &failures, what)
    }
  }
}

/// Repeats `ask` until it succeeds, or throws an error that retries cannot resolve. Calls `wait` before the next try,
/// which throws the final error if there is to be none.
func repeating<Answer>(
  _ ask: () async throws(UploadError) -> Answer, _ wait: (UploadError) async throws(UploadError) -> Void
) async throws(UploadError) -> Answer {
  while true {
    do {
      return try await ask()
    } catch {
      switch error.recovery {
      case .retry, .resync: try await wait(error)
      case .restart, .shrink, .adapt, .giveUp: throw error
      }
    }
  }
}

extension UploadError {
  /// No connection could be made.
  public var isUnreachable: Bool {
    guard let code = (cause as? TransportError)?.code else { return false }
    return code == .resolve || code == .connect
  }

  /// The reader has lost its source, which may be there again later, for example when there is a network.
  var isOfLostSource: Bool { side == .source && (cause as? BlobError)?.code == .invalidated }

  /// The source has another version than the one that was being sent.
  package var isOfChangedSource: Bool { side == .source && (cause as? BlobError)?.code == .changed }

  /// There is no file of the source's name. As after an interruption, the upload goes on where the file is put back.
  package var isOfGoneFile: Bool {
    guard side == .source, let error = cause as? BlobError else { return false }
    return error.code == .notFound && error.errno != 0
  }

  /// The file was deleted after its bytes had begun to be sent.
  package var isOfFileDeletedOnTheWay: Bool { isOfGoneFile && (cause as? BlobError)?.cause != nil }

  /// The same as `isOfLostSource` for a source of which it can be proved, by its version, that it still has the same bytes.
  func mayPass(for source: some BlobSource, _ info: BlobInfo) -> Bool {
    isOfLostSource && source.access == .random && info.validator != nil
  }

  /// Whether the status is one of a server that restarts or has no room for a while, or of a proxy that cannot reach its
  /// server.
  var saysUnavailable: Bool { status.map { [502, 503, 504, 507].contains($0) } ?? false }

  fileprivate func after(_ failures: FailureCount) -> UploadError {
    let kept = "in which the server kept \(failures.kept) of the \(failures.sent) bytes that it was sent"
    return after(failures: failures.total, failures.kept > 0 ? kept : nil)
  }

  /// The final error, with the number of failures in its message. `details`: what else the message says of them.
  func after(failures: Int, _ details: String? = nil) -> UploadError {
    var error = self
    error.recovery = .giveUp
    if failures > 1 {
      error.message += " (gave up after \(failures) failures in a row\(details.map { ", \($0)" } ?? ""))"
    }
    return error
  }
}
