import BlobHTTP
import BlobUpload
import Blobs

/// Uploads one source, from its opening to its end.
struct UploadTurns: Sendable {
  let destination: UploadDestination
  let journal: Journal
  let settings: BackgroundSettings
  let service: BackgroundService
  let board: UploadBoard

  /// How often an upload begins anew in one process because its source was edited meanwhile.
  private static let mostEdits = 8
  /// How often renewed credentials end a pause before bytes have arrived with them.
  private static let mostRenewals = 3

  /// Uploads a source, anew if it is edited meanwhile, and again after a pause while the server refuses the credentials.
  /// `added` becomes the last one whose upload was begun.
  func run(_ added: inout AddedSource, _ key: String, _ id: Int64) async -> BackgroundUpload.State {
    var (edits, refusals, renewals) = (0, 0, 0)
    // The bytes that have arrived before the last refusal.
    var arrived: Int64 = 0
    while true {
      let end = await upload(&added, key, id)
      if end.saysChanged, edits < Self.mostEdits {
        // The next turn uploads the present version. Pieces of the old one are of no use.
        edits += 1
        arrived = 0
        service.discardAll(of: key)
        board.change(key) { $0.state = .uploading }
      } else if case .failed(let error) = end, error.asksForCredentials {
        // An upload that takes days outlives many tokens.
        if case let now = board.acknowledged(key), now > arrived { (arrived, refusals, renewals) = (now, 0, 0) }
        let pause = settings.refusalPause(after: refusals)
        refusals += 1
        // New credentials that are refused all the same may be refused for ever.
        switch await pauseEnd(key, after: error, within: pause, asking: renewals < Self.mostRenewals) {
        case .renewed: renewals += 1
        case .ended: (refusals, renewals) = (0, 0)
        case .over: break
        }
        if Task.isCancelled { return .cancelled }
        board.change(key) { $0.state = .uploading }
      } else {
        return end
      }
    }
  }

  private func upload(_ added: inout AddedSource, _ key: String, _ id: Int64) async -> BackgroundUpload.State {
    do throws(UploadError) {
      let item = try await newestItem(&added, key)
      board.change(key) { $0.length = item.info.length }
      let clock = DeferringClock(longestPause: settings.longestPause)
      let transport = PieceTransport(
        service, upload: key, version: TaskLabel.version(item.info), pieceBytes: settings.pieceBytes, clock: clock
      ) { [board] length in
        board.change(key) { $0.length = length }
      } sent: { [board] offset in
        board.change(key) { upload in (upload.sent, upload.state) = (offset, .uploading) }
      }
      var uploader = Uploader(
        destination, transport: transport, journal: journal, retry: settings.retry, partSize: settings.pieceBytes)
      uploader.partsAtOnce = 1
      uploader.clock = clock
      uploader.inFlight = transport
      uploader.retrying = { [board] error, delay in board.change(key) { $0.state = .waiting(error, delay) } }
      var queue = UploadQueue(uploader, journal: journal, destinationID: id)
      queue.keepsOpen = true
      // An `Uploader` of this process or another may be sending the same source, and so may another uploader of this kind.
      queue.waiting = { [board, name = added.name] pid in
        board.change(key) { $0.state = .waiting(UploadError(busy: name, pid), .seconds(1)) }
      }
      // The app is not kept awake meanwhile.
      queue.others.sleep = { [wakeUp = service.wakeUp] pause in
        wakeUp.leave()
        defer { wakeUp.enter() }
        try await Task.sleep(for: pause)
      }
      return .finished(try await queue.upload(item) { [board] progress in board.follow(key, progress) })
    } catch {
      return error.side == .cancelled ? .cancelled : .failed(error)
    }
  }

  /// Takes the source that was added last: the earlier version of a file or photo that has changed cannot be read any more.
  private func newestItem(_ added: inout AddedSource, _ key: String) async throws(UploadError) -> UploadItem {
    while true {
      let item = try await item(added)
      guard let next = board.sends(TaskLabel.version(item.info), key) else {
        // The journal has the version that was added.
        if let version = added.version, version != item.info.validator?.version { added.isAgain = true }
        return item
      }
      added = next
      added.isAgain = true
    }
  }

  func item(_ added: AddedSource) async throws(UploadError) -> UploadItem {
    let source = added.source
    return item(added, try await readingSource { cancel, _ throws(BlobError) in try source.info(cancel) })
  }

  func item(_ added: AddedSource, _ info: BlobInfo) -> UploadItem {
    var target = destination.target(
      added.name, length: info.length, contentType: added.contentType, overwrite: settings.overwrite)
    target.modified = info.modified
    target.metadata = added.metadata
    return UploadItem(source: added.source, info: info, identity: added.identity, target: target)
  }

  private enum PauseEnd {
    case renewed, over
    /// `add` or `tryAgain` has ended it.
    case ended
  }

  /// Waits until the credentials were renewed, or the pause has ended. Nothing is with the system meanwhile, so the app is not
  /// kept awake.
  private func pauseEnd(
    _ key: String, after error: UploadError, within pause: Duration, asking: Bool
  ) async -> PauseEnd {
    let version = destination.credentialsVersion
    service.wakeUp.leave()
    defer {
      board.setPause(nil, key)
      service.wakeUp.enter()
    }
    let end = ContinuousClock.now + pause
    var isTold = false
    while !Task.isCancelled, case let rest = ContinuousClock.now.duration(to: end), rest > .zero {
      // Unstructured, because the board ends the sleep and not the upload.
      let sleep = Task { [settings] in
        // A sleep that is cancelled has ended.
        try? await Task.sleep(for: asking ? min(rest, settings.renewalInterval) : rest)
        return ()
      }
      board.setPause(sleep, key)
      // An app that is told of the pause may end it at once, so the board has the sleep before that.
      if !isTold { board.change(key) { $0.state = .waiting(error, pause) } }
      isTold = true
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
