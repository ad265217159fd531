import Blobs
import Synchronization

extension UploadQueue {
  /// Sends one item; nil if it was finished before. `started` as for `Uploader.upload`.
  package func upload(
    _ item: UploadItem, _ started: (@Sendable (UploadProgress) -> Void)?
  ) async throws(UploadError) -> UploadResult? {
    let outcome = OneOutcome(started)
    let feed = Feed([item])
    var queue = self
    queue.jobs = 1
    var ended: UploadError?
    do { try await queue.run({ feed.next() }, outcome) } catch { ended = error }
    // The journal does not know what has become of the item. Any other error may be that of an earlier one.
    if let ended, ended.side == .journal { throw ended }
    switch outcome.value {
    case .sent(let result, _): return result
    case .doneBefore: return nil
    case nil: throw ended ?? UploadError(.giveUp, .cancelled, "\(item.target.path): interrupted")
    case .busy(let pid):
      throw UploadError(busy: item.target.path, pid)
    case .failed(let error): throw error
    }
  }
}

/// A feed of one batch.
private final class Feed: Sendable {
  private let items: Mutex<[UploadItem]?>
  init(_ items: [UploadItem]) { self.items = Mutex(items) }
  func next() -> [UploadItem]? { items.withLock { $0.take() } }
}

private final class OneOutcome: UploadObserver {
  private let outcome = Mutex<UploadOutcome?>(nil)
  private let hasStarted: (@Sendable (UploadProgress) -> Void)?
  init(_ hasStarted: (@Sendable (UploadProgress) -> Void)?) { self.hasStarted = hasStarted }
  var value: UploadOutcome? { outcome.withLock { $0 } }
  func started(_ item: UploadItem, _ progress: UploadProgress) { hasStarted?(progress) }
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    self.outcome.withLock { $0 = outcome }
  }
}
