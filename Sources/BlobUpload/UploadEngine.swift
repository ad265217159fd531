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
    sealed: SealedUpload? = nil,
    resuming session: UploadSession? = nil, receipts: [PartReceipt] = [], comparing doubted: [SentRange]? = nil,
    sentAtMost limit: Int64? = nil, progress: UploadProgress
  ) async throws(UploadError) -> UploadResult {
    if let length = info.length, let most = uploader.destination.limits.total, length > most {
      throw UploadError(.giveUp, .file, "it has \(length) bytes, and the server takes \(most) at most")
    }
    let source = Uploader.prepared(source, info)
    // A file that is sealed under a new key has other bytes than every file at the server.
    let isNew = sealed?.isUnderNewKey ?? false
    if session == nil, isNew { try await checkName(of: target) }
    if session == nil, doubted == nil, !isNew,
      uploader.destination.acquaintance.existing.isAskedFirst(info.length, target),
      let found = try await existing(source, info, target)
    {
      progress.resume(at: info.length ?? 0)
      return stored(found)
    }
    do throws(UploadError) {
      return stored(
        try await send(
          source, info, to: target, entry: entry, resuming: session, receipts: receipts, comparing: doubted,
          sentAtMost: limit, progress: progress))
    } catch {
      // A full server reserves room for a file before it compares the file with the one that has the name.
      guard session == nil, error.status == 507, uploader.destination.acquaintance.existing.mayBeAsked(target),
        let found = try await existing(source, info, target)
      else { throw error }
      progress.resume(at: info.length ?? 0)
      return stored(found)
    }
  }

  private func send(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, entry: Int64?,
    resuming session: UploadSession?,
    receipts: [PartReceipt], comparing doubted: [SentRange]?, sentAtMost limit: Int64?, progress: UploadProgress
  ) async throws(UploadError) -> UploadResult {
    var ledger: (any UploadLedger)?
    if let journal = uploader.journal, let entry { ledger = JournalLedger(journal, entry) }
    // Most files are small and are sent here, without considering parts or pipes.
    if session == nil, let length = info.length, length < uploader.splitting.leastLength {
      let run = UploadRun(self, source, info, target, ledger, progress)
      return try await run.run()
    }
    return try await sendLarge(
      source, info, to: target, ledger,
      resuming: EarlierUpload(session: session, receipts: receipts, doubted: doubted, sentLimit: limit), progress)
  }

  /// A function of its own, because its frame is large, and many small files are sent at the same time.
  @inline(never)
  private func sendLarge(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, _ ledger: (any UploadLedger)?,
    resuming earlier: EarlierUpload, _ progress: UploadProgress
  ) async throws(UploadError) -> UploadResult {
    var earlier = earlier
    if let result = try await uploadInParts(source, info, to: target, ledger, resuming: earlier, progress) {
      return result
    }
    if earlier.session?.sizeOfParts != nil { earlier.session = nil }
    if info.length == nil, source.access == .sequential, uploader.destination.traits.numbersParts {
      return try await uploadPipe(source, info, to: target, ledger, resuming: earlier, progress)
    }
    let result = try await knowingLength(source, info, target) {
      [earlier] source, info, target async throws(UploadError) in
      let run = UploadRun(self, source, info, target, ledger, resuming: earlier, progress)
      return try await run.run()
    }
    return result
  }

  /// The result of a finished upload, if the server has the same bytes under the name. nil: the server has other bytes
  /// or none, or cannot tell.
  func existing(
    _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget
  ) async throws(UploadError) -> UploadResult? {
    guard let length = info.length else { return nil }
    let whole = BlobSlice(source, length: length, validator: info.validator)
    guard try await context().hasSameBytes(as: whole, at: target.url) == true else {
      uploader.destination.acquaintance.existing.note(wasThere: false)
      return nil
    }
    uploader.destination.acquaintance.existing.note(wasThere: true)
    return UploadResult(location: target.url.description, length: length, isCompared: true)
  }

  /// Throws if a large sealed file would be refused after all of it was sent, because a file has its name: the two have other
  /// bytes, since each key is new.
  private func checkName(of target: UploadTarget) async throws(UploadError) {
    guard !target.overwrite, uploader.destination.traits.recipient == nil, target.length ?? .max > ExistingFiles.large
    else { return }
    let found: RemoteFile?
    do throws(UploadError) {
      found = try await uploader.destination.uploadProtocol.remoteFile(target, location: nil, context())
    } catch {
      // The upload gets the same error and handles it.
      if error.side == .cancelled { throw error }
      return
    }
    guard found != nil else { return }
    throw UploadError(.giveUp, .file, "\(target.url): a file of that name is there already", status: 409)
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
