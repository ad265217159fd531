import BlobUpload
import Blobs

// Ends uploads.
extension BackgroundUploader {
  /// Ends an upload, and deletes what the server has of it and its entry in the journal. Returns once this is done, or
  /// the server does not answer; then the server's part of the upload expires.
  public func cancel(_ name: BytePath) async throws(UploadError) {
    let id = try await destinationID()
    board.cancelWaiting(name)
    try await remove(name, id)
  }

  /// Ends all uploads to this destination as `cancel` ends one, also those of earlier launches whose sources were not opened,
  /// and versions that wait for the end of an earlier one.
  /// For a user who signs out: call it while the credentials are still valid, since the server does not delete anything without
  /// them. What was uploaded stays, and counts as uploaded.
  public func cancelAll() async throws(UploadError) {
    let id = try await destinationID()
    board.cancelWaiting(nil)
    try await remove(nil, id)
  }

  /// Ends the uploads with this name, or all, and deletes what the server and the journal have of them.
  func remove(_ name: BytePath?, _ id: Int64) async throws(UploadError) {
    let tasks = board.tasks(named: name)
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
    let direct = Uploader(destination, transport: service.direct)
    var answers = true
    do {
      for found in try await entries(named: name, id) {
        guard case .resume(let entry)? = try await claim(found, named: name, id) else { continue }
        service.discardAll(of: key(of: entry))
        // A server that does not answer is not waited for once more for each of many uploads.
        if let session = entry.session, answers { answers = await direct.discard(session) || name != nil }
        try await journal.remove([entry.id])
      }
      // An upload that is done may have another version in the journal, which a later launch would upload once its source
      // can be opened.
      try await journal.dropAdditions(at: id, path: name)
    } catch {
      throw UploadError(journal: error)
    }
  }

  private func entries(named name: BytePath?, _ id: Int64) async throws(JournalError) -> [JournalEntry] {
    try await journal.unfinished().filter { $0.destinationID == id && (name == nil || $0.intent.path == name) }
  }

  /// nil: another call has removed the entry meanwhile.
  private func claim(
    _ entry: JournalEntry, named name: BytePath?, _ id: Int64
  ) async throws(JournalError) -> JournalClaim? {
    do throws(JournalError) {
      return try await journal.claim(entries: [entry.id]).first
    } catch {
      if try await entries(named: name, id).contains(where: { $0.id == entry.id }) { throw error }
      return nil
    }
  }

  /// The version is uploaded after the one that is being sent, also if the app is terminated in between.
  func keepAddition(_ added: AddedSource, _ item: UploadItem) async throws(UploadError) {
    do { try await journal.keep(added.addition, of: item.intent()) } catch { throw UploadError(journal: error) }
  }

  /// The source was uploaded after another version had been sent, or is not uploaded any more.
  func forgetAddition(_ added: AddedSource) async {
    guard let version = added.version else { return }
    let target = destination.target(added.name, length: nil, contentType: added.contentType)
    let item = UploadItem(source: added.source, info: BlobInfo(length: nil), identity: added.identity, target: target)
    // Where the journal cannot be written, the next launch finds that the version is done.
    try? await journal.dropAddition(ofVersion: version, item.intent())
  }
}
