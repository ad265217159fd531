import Blobs

/// An item to upload, as it was found.
public struct UploadItem: Sendable {
  /// The source of the bytes. It is opened when the item's turn comes.
  public var source: any BlobSource
  /// The version that was found; only this version is sent.
  public var info: BlobInfo
  /// Identifies the source across runs; for a file, its absolute path.
  public var identity: BytePath
  /// Where the source is sent, and under which name.
  public var target: UploadTarget
  /// How the name counts on where it is taken; nil: it has no number yet, and would get one before its extension.
  package var numbered: NumberedName?
  /// The files that get the same number; nil: it is no photo, or files do not get other names.
  package var group: FileGroup?
  /// The source, if its ciphertext is sent; nil: its bytes are sent as they are.
  package var sealed: SealedUpload?
  /// Another source of this run that has the same name and the same bytes: neither replaces the other. nil: none is known.
  package var twin: BytePath?

  /// Creates an item, without opening its source.
  public init(source: any BlobSource, info: BlobInfo, identity: BytePath, target: UploadTarget) {
    self.source = source
    self.info = info
    self.identity = identity
    self.target = target
  }

  /// The record that the journal stores before the first byte is sent.
  package func intent(partSize: Int64? = nil) -> JournalIntent {
    var intent = JournalIntent(
      source: identity, target: target.url.normalized.description, recipient: target.recipient, path: target.plainPath,
      length: info.length, validator: info.validator, contentType: target.contentType, partSize: partSize)
    (intent.numbered, intent.relatives) = (numbered, JournalIntent.Relatives(twin: twin, group: group?.key))
    if target.unsealedPath != nil { intent.sealedName = SealedNameFacts(modified: info.modified) }
    return intent
  }
}

/// How an item of a queue has ended.
public enum UploadOutcome: Sendable {
  /// The server has the whole file now. `from` is the offset at which this run started to send: 0 for a new upload, and
  /// the length for a file that the server already had.
  case sent(UploadResult, from: Int64)
  /// The item was finished before; the value says how that is known.
  case doneBefore(StoredEvidence)
  /// Another process is sending the item, or has another file of its photo.
  case busy(pid: Int32)
  /// The item was not uploaded. A later run resumes it, if the error permits that.
  case failed(UploadError)
}

extension UploadOutcome {
  /// Whether the server already had all `length` bytes under the name, so that nothing was stored.
  package func foundAll(of length: Int64?) -> Bool {
    guard case .sent(let result, let start) = self else { return false }
    return result.wasThere || start > 0 && start == length ?? result.length
  }
}

/// Receives the result of each item. Called on any thread, several at the same time; must be short.
public protocol UploadObserver: Sendable {
  /// Called before the first request for an item. `progress` changes while the item is being sent.
  func started(_ item: UploadItem, _ progress: UploadProgress)
  /// `progress` is the one passed to `started`; nil if the item was not started.
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome)
}
