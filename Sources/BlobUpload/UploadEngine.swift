import BlobHTTP
import Blobs

/// Runs the uploads to one destination, all with the same settings.
final class UploadEngine: Sendable {
  let uploader: Uploader
  /// Shared by the requests of all these uploads.
  let server: UploadServer

  init(_ uploader: Uploader) {
    var uploader = uploader
    uploader.spool.holdPart(of: uploader.destination)
    self.uploader = uploader
    server = uploader.server
  }

  func context(_ events: any UploadEvents = NoUploadEvents()) -> UploadContext { UploadContext(server, events) }

  /// Same as `Uploader.upload`.
  func upload(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, entry: Int64? = nil,
    resuming session: UploadSession? = nil, receipts: [PartReceipt] = [], comparing doubted: [SentRange]? = nil,
    sentAtMost limit: Int64? = nil, progress: UploadProgress
  ) async throws(UploadError) -> UploadResult {
    if let length = info.length, let most = uploader.destination.limits.total, length > most {
      throw UploadError(.giveUp, .file, "it has \(length) bytes, and the server takes \(most) at most")
    }
    let source = Uploader.prepared(source, info)
    var ledger: (any UploadLedger)?
    if let journal = uploader.journal, let entry { ledger = JournalLedger(journal, entry) }
    if session == nil, doubted == nil, let found = try await existing(source, info, target) {
      progress.resume(at: info.length ?? 0)
      return stored(found)
    }
    // Most files are small and are sent here, without considering parts or pipes.
    if session == nil, let length = info.length, length < uploader.parallelFrom {
      let run = UploadRun(self, source, info, target, ledger, nil, [], comparing: doubted, progress)
      return stored(try await run.run())
    }
    if let result = try await uploadInParts(
      source, info, to: target, ledger, session, receipts, isDoubted: doubted != nil, progress)
    {
      return stored(result)
    }
    let session = session?.sizeOfParts == nil ? session : nil
    if info.length == nil, source.access == .sequential, uploader.destination.traits.numbersParts {
      return stored(
        try await uploadPipe(source, info, to: target, ledger, session, isDoubted: doubted != nil, progress))
    }
    let result = try await knowingLength(source, info, target) { source, info, target async throws(UploadError) in
      let run = UploadRun(
        self, source, info, target, ledger, session, receipts, comparing: doubted, sentAtMost: limit, progress)
      return try await run.run()
    }
    return stored(result)
  }

  private func stored(_ result: UploadResult) -> UploadResult {
    uploader.destination.acquaintance.noteStored()
    return result
  }

  /// Deletes an upload that will not be resumed, and resets its entry in the journal. If the server has not confirmed
  /// the deletion, the journal records the upload as a leftover on the server.
  func discard(_ session: UploadSession, _ ledger: (any UploadLedger)?) async {
    if await uploader.discard(session) { ledger?.restarted() } else { ledger?.abandoned() }
  }
}
