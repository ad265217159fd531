import BlobHTTP

extension Uploader {
  /// Waits as the policy says after `failures` in a row, `error` the last of them. Throws it when that is enough, and
  /// an error with side `.cancelled` when the task is cancelled meanwhile; `what` is named there.
  func wait(after error: UploadError, _ failures: Int, _ what: String) async throws(UploadError) {
    var policy = retry
    // A place that was never reached is most likely a wrong one: say so soon.
    if error.isUnreachable, !destination.acquaintance.isReal { policy.retries = min(policy.retries, 1) }
    var asked: Duration?
    if case .retry(let after) = error.recovery { asked = after }
    var random = SystemRandomNumberGenerator()
    guard let wait = policy.delay(after: failures, asked: asked, using: &random) else {
      throw destination.acquaintance.judge(exhausted: error.after(failures))
    }
    retrying?(error, wait)
    do {
      try await clock.sleep(for: wait)
    } catch {
      throw UploadError(.giveUp, .cancelled, "\(what): cancelled")
    }
  }

  /// Asks again until there is an answer, or an error that is final.
  func patiently<Answer>(
    _ what: String, _ ask: () async throws(UploadError) -> Answer
  ) async throws(UploadError) -> Answer {
    var failures = 0
    while true {
      do {
        return try await ask()
      } catch {
        if case .giveUp = error.recovery { throw error }
        if case .restart = error.recovery { throw error }
        if case .shrink = error.recovery { throw error }
        if case .rephrase = error.recovery { throw error }
        failures += 1
        try await wait(after: error, failures, what)
      }
    }
  }
}

extension UploadError {
  /// No connection could be made at all.
  public var isUnreachable: Bool {
    guard let code = (cause as? TransportError)?.code else { return false }
    return code == .resolve || code == .connect
  }

  /// As an error that is final.
  fileprivate func after(_ failures: Int) -> UploadError {
    var error = self
    error.recovery = .giveUp
    if failures > 1 { error.message += " (gave up after \(failures) failures in a row)" }
    return error
  }
}
