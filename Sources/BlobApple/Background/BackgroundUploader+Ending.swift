import BlobUpload
import Blobs

// Ends uploads.
extension BackgroundUploader {
  /// Ends an upload, and deletes what the server has of it and its entry in the journal. Returns once this is done, or
  /// the server does not answer; then the server's part of the upload expires.
  /// A call of `add` that still looks at its source, or waits for other uploads, returns without an upload.
  /// A source that is added after this call has begun is another upload, and does not wait for the deletion.
  public func cancel(_ name: BytePath) async throws(UploadError) { try await cancel(named: name) }

  /// Ends all uploads of this uploader as `cancel` ends one, also those of earlier launches whose sources were not opened,
  /// versions that wait for the end of an earlier one, and what uploads of an `Uploader` to this destination have left. Those
  /// that an uploader with another identifier has added last go on.
  /// For a user who signs out: call it while the credentials are still valid, since the server does not delete anything without
  /// them. What was uploaded stays, and counts as uploaded.
  public func cancelAll() async throws(UploadError) { try await cancel(named: nil) }

  /// nil: all.
  private func cancel(named name: BytePath?) async throws(UploadError) {
    // Calls of `add` from here on are other uploads, while the first one of this process may still open the journal.
    let last = board.lastSeat
    let id = try await destinationID()
    for task in board.cancel(name, upTo: last) { await task.value }
    try await remove(id, areMany: name == nil) { name == nil || $0.intent.path == name }
  }

  /// Deletes what the server, the system and the journal have of uploads that do not run, unless they were added again
  /// meanwhile. The journal is first: what is added from then on does not wait for the server.
  func remove(
    _ id: Int64, areMany: Bool = false, where isMeant: @escaping @Sendable (JournalEntry) -> Bool
  ) async throws(UploadError) {
    let tasks = service.registry.pending()
    let direct = Uploader(destination, transport: service.direct)
    var answers = true
    do {
      let entries = try await journal.giveUp(at: id) { [self] entry, addition in
        let key = key(of: entry)
        // Another uploader of this process may have added the same source before, and sends it all the same.
        return isMeant(entry) && isOwn(addition) && !board.isActive(key) && !shared.order.has(key)
      }
      let keys = Set(entries.map { key(of: $0) })
      for task in tasks where keys.contains(task.upload) { service.discard(task) }
      for entry in entries {
        guard let session = entry.session else { continue }
        // A server that does not answer is not waited for once more for each of many uploads.
        if answers { answers = await direct.discard(session) || !areMany }
        try await journal.remove([entry.id])
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// The version is uploaded after the one that is being sent, also if the app is terminated in between.
  func keepAddition(_ added: AddedSource, _ item: UploadItem) async throws(UploadError) {
    do { try await journal.keep(addition(of: added, isAgain: true), of: item.intent()) } catch {
      throw UploadError(journal: error)
    }
  }

  func addition(of added: AddedSource, isAgain: Bool = false) -> JournalAddition {
    added.addition(by: identifier, number: shared.order.nextAddition(), isAgain: isAgain)
  }

  /// The source was uploaded after another version had been sent, or is not uploaded any more.
  func forgetAddition(_ added: AddedSource) async {
    guard let version = added.version else { return }
    let item = item(added, BlobInfo(length: nil))
    // Where the journal cannot be written, the next launch finds that the version is done.
    try? await journal.dropAddition(ofVersion: version, item.intent())
  }
}
