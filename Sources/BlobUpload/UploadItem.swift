import Blobs

/// Something to upload, as it was found.
public struct UploadItem: Sendable {
  public var source: any BlobSource
  /// The version that was found; only this one is sent.
  public var info: BlobInfo
  /// Who the source is, across runs: for a file, its absolute path.
  public var identity: BytePath
  public var target: UploadTarget

  public init(source: any BlobSource, info: BlobInfo, identity: BytePath, target: UploadTarget) {
    self.source = source
    self.info = info
    self.identity = identity
    self.target = target
  }

  /// What the journal keeps of it before its first byte.
  package func intent(partSize: Int64? = nil) -> JournalIntent {
    JournalIntent(
      source: identity, target: target.url.normalized.description, recipient: target.recipient, path: target.path,
      length: info.length, validator: info.validator, contentType: target.contentType, partSize: partSize)
  }
}

public enum UploadOutcome: Sendable {
  /// It is there now. `from` is the byte from which this run sent; 0 for a new upload, and the length of one that the
  /// server was found to have.
  case sent(UploadResult, from: Int64)
  /// It was finished before: how that is known.
  case doneBefore(StoredEvidence)
  /// Another process has it.
  case busy(pid: Int32)
  case failed(UploadError)
}

extension UploadOutcome {
  /// Whether the server had all `length` bytes under the name already, so that nothing was stored.
  package func foundAll(of length: Int64?) -> Bool {
    guard case .sent(let result, let start) = self else { return false }
    return result.wasThere || start > 0 && start == length ?? result.length
  }
}

/// Hears what becomes of each item. Called on any thread, several at once; must be short.
public protocol UploadObserver: Sendable {
  func started(_ item: UploadItem, _ progress: Progress)
  /// `progress` is the one of `started`; nil where nothing was started.
  func ended(_ item: UploadItem, _ progress: Progress?, _ outcome: UploadOutcome)
}
