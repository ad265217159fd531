import BlobCrypto
import BlobHTTP
import Blobs

/// Finds out what the journal and the server have of items that an earlier run has sent.
struct EarlierVersions {
  let destination: QueueDestination
  /// As `UploadQueue.check`, `verify` and `replacesGrown`.
  let checks: Bool
  let verifies: Bool
  let replacesGrown: Bool

  init(_ queue: UploadQueue, _ destination: QueueDestination) {
    self.destination = destination
    (checks, verifies, replacesGrown) = (queue.check, queue.verify, queue.replacesGrown)
  }

  /// How it is known that the version that an item has now is stored; nil: it is to be sent.
  func evidence(of item: UploadItem, _ entry: JournalEntry) async throws(UploadError) -> StoredEvidence? {
    guard try await isWhatWasSent(item, entry) else { return nil }
    var found: StoredEvidence? = .journal
    if entry.isSuperseded { found = try await kept(item, entry) }
    if found != nil, checks { found = try await arrived(item, entry) }
    return found
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
    let named = try await destination.uploader.patiently("\(target.path)") { () async throws(UploadError) in
      try await destination.engine.context().remoteLength(of: target.url, expecting: length)
    }
    guard named == .missing else { return false }
    return try await destination.uploader.isThere(target, location: entry.location)
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
    let uploader = destination.uploader
    if !verifies {
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
      if let content = try await destination.journal.seals.contents(of: [entry.id])[entry.id] { sealed.recall(content) }
    } catch {
      throw UploadError(journal: error)
    }
    do throws(UploadError) {
      return try await destination.uploader.evidence(of: sealed, info, target, location: entry.location)
    } catch {
      if !error.isOfLostKey { throw error }
      return .length
    }
  }
}
