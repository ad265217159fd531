import BlobCrypto
import BlobHTTP
import Blobs

// Checks of items that an earlier run has sent.
extension UploadQueue {
  /// Checks an item, and sends it again if needed. Returns the error after which no other item can succeed; nil:
  /// continue.
  func confirm(
    _ work: Claimed, _ entry: JournalEntry, _ engine: UploadEngine, _ observer: some UploadObserver
  ) async -> UploadError? {
    let item = work.item
    var evidence = StoredEvidence.journal
    do {
      let isSame = try await isWhatWasSent(item, entry)
      var found: StoredEvidence? = isSame ? .journal : nil
      if isSame, entry.isSuperseded { found = try await kept(item, entry) }
      if found != nil, check { found = try await arrived(item, entry) }
      // Another process may have started to send to the same name since the journal was read.
      guard let found else { return await handle(try await claim([item], again: true)[0], engine, observer) }
      evidence = found
    } catch {
      let failure = judged(error)
      observer.ended(item, nil, .failed(failure))
      return failure.endsQueue ? failure : nil
    }
    if entry.isSuperseded { journal.kept(entry.id) }
    if evidence != .journal { uploader.destination.acquaintance.noteStored() }
    observer.ended(item, nil, .doneBefore(evidence))
    return nil
  }

  /// Asks the server whether it has the upload of an entry that is superseded. Returns the evidence; nil: it may have lost it,
  /// so that the item is sent again.
  ///
  /// A file that is not sealed is sent with the same bytes, which the server compares. A sealed file would have other ones,
  /// since its key is gone, so what is known of its ciphertext is compared here.
  private func kept(_ item: UploadItem, _ entry: JournalEntry) async throws(UploadError) -> StoredEvidence? {
    if let sealed = item.sealed, !sealed.hasKey {
      guard let found = try await arrivedSealed(sealed, item.info, item.target, entry) else { return nil }
      // A file of the same length may be the one that has replaced this upload.
      if found != .length || entry.isDoubted { return found }
    }
    return try await isKept(entry, item.target) ? .length : nil
  }

  /// Whether the server has kept the upload of an entry, though another source was later sent under its name. A server
  /// that keeps uploads apart has it at the upload's own URL, and no file under the name. If there is a file under the
  /// name, that file has replaced the upload.
  private func isKept(_ entry: JournalEntry, _ target: UploadTarget) async throws(UploadError) -> Bool {
    guard let length = entry.intent.length else { return false }
    var target = target
    target.length = length
    let named = try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
      try await uploader.context().remoteLength(of: target.url, expecting: length)
    }
    guard named == .missing else { return false }
    return try await uploader.isThere(target, location: entry.location)
  }

  /// Asks the server whether it still has the file that an earlier run sent, and with `verify` also reads the file
  /// back. Returns the evidence; nil: the server no longer has the file.
  private func arrived(_ item: UploadItem, _ entry: JournalEntry) async throws(UploadError) -> StoredEvidence? {
    // The length of a source that was generated during the upload is known only since then.
    var (info, target) = (item.info, item.target)
    if info.length == nil { (info.length, target.length) = (entry.sentLength, entry.sentLength) }
    if let sealed = item.sealed, !sealed.hasKey {
      return try await arrivedSealed(sealed, info, target, entry)
    }
    if !verify {
      return try await uploader.evidence(of: item.source, info, target, location: entry.location)
    }
    if try await !uploader.isThere(target, location: entry.location) { return nil }
    do {
      try await uploader.verify(item.source, info, at: target, location: entry.location)
      return .bytes
    } catch {
      if error.saysOtherBytes { return nil }
      throw error
    }
  }

  /// `arrived` for a sealed file whose key is gone: what the journal has of its ciphertext is compared.
  private func arrivedSealed(
    _ sealed: SealedUpload, _ info: BlobInfo, _ target: UploadTarget, _ entry: JournalEntry
  ) async throws(UploadError) -> StoredEvidence? {
    do throws(JournalError) {
      if let content = try await journal.seals.contents(of: [entry.id])[entry.id] { sealed.recall(content) }
    } catch {
      throw UploadError(journal: error)
    }
    do throws(UploadError) {
      return try await uploader.evidence(of: sealed, info, target, location: entry.location)
    } catch {
      if !error.isOfLostKey { throw error }
      return .length
    }
  }
}
