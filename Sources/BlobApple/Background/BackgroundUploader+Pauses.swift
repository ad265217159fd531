import BlobUpload

// Pauses of uploads whose credentials the server has refused.
extension BackgroundUploader {
  /// Tries the uploads at once that wait because the server has refused their credentials, for example when the user has
  /// signed in again and `rereading` gives a new token. Other pauses go on.
  public func tryAgain() { board.endPauses() }

  enum PauseEnd {
    case renewed, over
    /// `add` or `tryAgain` has ended it.
    case ended
  }

  /// Waits until the credentials were renewed, or the pause has ended. Nothing is with the system meanwhile, so the app is not
  /// kept awake.
  func pauseEnd(_ key: String, within pause: Duration, asking: Bool) async -> PauseEnd {
    let version = destination.credentialsVersion
    service.wakeUp.leave()
    defer {
      board.setPause(nil, key)
      service.wakeUp.enter()
    }
    let end = ContinuousClock.now + pause
    while !Task.isCancelled, case let rest = ContinuousClock.now.duration(to: end), rest > .zero {
      // Unstructured, because the board ends the sleep and not the upload.
      let sleep = Task { [settings] in
        // A sleep that is cancelled has ended.
        try? await Task.sleep(for: asking ? min(rest, settings.renewalInterval) : rest)
        return ()
      }
      board.setPause(sleep, key)
      await withTaskCancellationHandler {
        await sleep.value
      } onCancel: {
        sleep.cancel()
      }
      if sleep.isCancelled { return .ended }
      if asking, await destination.areCredentialsRenewed(since: version) { return .renewed }
      if sleep.isCancelled { return .ended }
    }
    return .over
  }
}
