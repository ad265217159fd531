import BlobUpload
import Blobs

/// An upload in the journal.
struct EarlierUpload {
  var entry: JournalEntry
  /// nil: no uploader of this kind has added it, or not with this version of the app.
  var addition: JournalAddition?

  /// The upload, which was given up.
  var failure: BackgroundUpload {
    let reason = entry.error ?? "\(entry.intent.path): it was given up"
    return BackgroundUpload(ended: entry, .failed(UploadError(.giveUp, .file, reason)))
  }
}

/// The uploads of earlier launches and their ends, in the journal.
struct EarlierUploads: Sendable {
  let journal: Journal
  /// Identifies the uploader that goes on with them.
  let identifier: String
  let reopening: @Sendable (BytePath) -> (any BlobSource)?

  /// Whether this uploader goes on with the upload, or none does: then it was not added by an uploader of this kind.
  func isOwn(_ addition: JournalAddition?) -> Bool {
    guard let uploader = addition?.uploader else { return true }
    return uploader == identifier
  }

  /// The uploads that have not ended or have failed, of all uploaders.
  func unfinished(at id: Int64) async throws(JournalError) -> [EarlierUpload] {
    try await withAdditions(journal.unfinished(at: [id]).filter { !$0.isLeftover })
  }

  /// The same, and those that have ended and whose sources were added again since.
  func waiting(at id: Int64) async throws(JournalError) -> [EarlierUpload] {
    let again = try await journal.additions.dropDone().filter { $0.destinationID == id }
    return try await unfinished(at: id) + withAdditions(again)
  }

  private func withAdditions(_ entries: [JournalEntry]) async throws(JournalError) -> [EarlierUpload] {
    let additions = try await journal.additions.all(of: entries.map(\.id))
    return entries.map { EarlierUpload(entry: $0, addition: additions[$0.id]) }
  }

  /// The uploads that go on by themselves, and whose sources can be opened now.
  func sources(of uploads: [EarlierUpload]) -> [(upload: EarlierUpload, source: AddedSource)] {
    uploads.filter { [.intent, .open, .done].contains($0.entry.state) || $0.entry.isSuperseded }.compactMap { upload in
      guard var source = added(upload) else { return nil }
      source.isAgain =
        upload.addition?.isAgain == true
        || source.version != nil && source.version != upload.entry.intent.validator?.version
      return (upload, source)
    }
  }

  /// The arguments of an earlier call of `add`, from the journal; nil: `reopening` cannot open the source now.
  func added(_ upload: EarlierUpload) -> AddedSource? {
    let (intent, addition) = (upload.entry.intent, upload.addition)
    guard let source = reopening(intent.source) else { return nil }
    var added = AddedSource(
      source: source, identity: intent.source, name: intent.path,
      contentType: addition?.contentType ?? intent.contentType, metadata: addition?.metadata ?? [:])
    added.version = addition?.version
    return added
  }

  func key(of entry: JournalEntry) -> String {
    let intent = entry.intent
    return TaskLabel.upload(of: intent.source, to: intent.target, recipient: intent.recipient)
  }

  /// The uploads that have finished at `time`, in seconds since 1970, or later.
  func finished(at id: Int64, since time: Int64) async throws(UploadError) -> [BackgroundUpload] {
    do {
      return try await journal.finished(at: [id], since: time).map { entry in
        BackgroundUpload(
          ended: entry, .finished(UploadResult(location: entry.location, length: entry.intent.length)))
      }
    } catch {
      throw UploadError(journal: error)
    }
  }
}

extension BackgroundUpload {
  /// An upload of which nothing is under way now.
  fileprivate init(ended entry: JournalEntry, _ state: State) {
    self.init(entry.intent.path, identity: entry.intent.source, length: entry.intent.length)
    (acknowledged, sent) = (entry.acknowledged, entry.acknowledged)
    (ended, self.state) = (entry.updated, state)
  }
}
