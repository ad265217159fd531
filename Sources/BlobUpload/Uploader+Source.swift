import BlobHTTP
import Blobs
import Synchronization

extension Uploader {
  /// Uploads one source as `path` below the destination, and returns when the server has all of it.
  ///
  /// With a journal, a later call for the same source, in this process or another, resumes the upload. A call for a
  /// source that has not changed since its upload was finished sends nothing and returns nil.
  ///
  /// - `identity`: identifies the source across runs; nil: `path`. For a file, its absolute path.
  /// - `metadata`: as `UploadTarget.metadata`.
  /// - `started`: called once the upload has begun, on any thread, with its progress, which any thread may poll; not
  ///   called if nothing is sent because the source was uploaded before. Must be short.
  /// - Throws when the upload cannot continue; `side` tells who must act. The same call goes on from what the server has.
  ///   Cancelling the task throws with side `.cancelled`, not a `CancellationError`.
  @discardableResult
  public func upload(
    _ source: any BlobSource, as path: BytePath, identity: BytePath? = nil,
    contentType: String = "application/octet-stream", metadata: [String: String] = [:], overwrite: Bool = false,
    started: (@Sendable (UploadProgress) -> Void)? = nil
  ) async throws(UploadError) -> UploadResult? {
    let info = try await readingSource { cancel, _ throws(BlobError) in try source.info(cancel) }
    var target = destination.target(path, length: info.length, contentType: contentType, overwrite: overwrite)
    target.modified = info.modified
    target.metadata = metadata
    guard let journal else {
      let progress = UploadProgress()
      started?(progress)
      return try await upload(source, info, to: target, progress: progress)
    }
    let id: Int64
    do { id = try await journal.destinationID(of: destination, overwrite: overwrite) } catch {
      throw UploadError(journal: error)
    }
    let item = UploadItem(source: source, info: info, identity: identity ?? path, target: target)
    return try await UploadQueue(self, journal: journal, destinationID: id).upload(item, started)
  }
}

extension UploadDestination {
  /// What the journal keeps of this destination.
  package func journaled(overwrite: Bool) -> JournalDestination {
    JournalDestination(
      endpoint: endpoint.text, protocolName: uploadProtocol.name, overwrite: overwrite, recipient: journaledRecipient,
      account: journaledAccount)
  }
}

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
