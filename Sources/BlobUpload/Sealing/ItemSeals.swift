import BlobCrypto
import BlobHTTP
import Blobs

/// The entry of the journal with which an upload goes on.
struct Continuation {
  var entry: JournalEntry?
  /// See `Uploader.upload`.
  var doubted: [SentRange]?
}

/// Gives sealed items their keys. Two plaintexts must never be sealed under one key and the same number of a chunk: their
/// difference would be readable.
struct ItemSeals {
  let destination: QueueDestination
  private var uploader: Uploader { _read { yield destination.uploader } }
  private var journal: Journal { destination.journal }

  /// Gives a sealed item its key: that of the earlier run, if this is certainly the same version and the journal has the
  /// key, and otherwise a new one, with which nothing of an earlier run goes on.
  func withKey(
    _ source: SealedUpload, _ item: UploadItem, _ id: Int64, _ earlier: Continuation
  ) async throws(UploadError) -> Continuation {
    if let entry = earlier.entry {
      if let seal = try await seal(of: entry, for: source, item.info) {
        source.use(seal, for: item.info.validator, isNew: false, hashing: digestOfSealed)
        if try await isUnchanged(item, earlier) {
          // Parts are sent in any order, so that the digest is made at the end.
          if entry.session != nil, entry.session?.sizeOfParts == nil { try await source.hash(upTo: entry.acknowledged) }
          if earlier.doubted != nil, let now = item.info.validator { journal.recognized(id, now) }
          return Continuation(entry: entry)
        }
      }
      if let session = entry.session {
        await giveUp(entry.sessionWithParts ?? session, id)
        if let now = item.info.validator { journal.recognized(id, now) }
      }
    }
    var seal = source.takeSeal(for: item.info.validator, id)
    if seal == nil {
      let new = try await source.sealing.newSeal()
      if source.goesOn(item.info) { try await keep([(id, new)]) }
      seal = new
    }
    if let seal { source.use(seal, for: item.info.validator, isNew: true, hashing: digestOfSealed) }
    return Continuation()
  }

  /// Writes seals to the journal. A run after a SIGKILL recognises a file at the server by its key, also where one request
  /// sends all of it, so this is done before the first byte leaves.
  private func keep(_ seals: [(id: Int64, seal: FileSeal)]) async throws(UploadError) {
    do throws(JournalError) {
      let key = try await journal.seals.key()
      for (id, seal) in seals { journal.sealing(id, Base64.encode(seal.boxed(under: key))) }
      try await journal.flush()
    } catch {
      throw UploadError(journal: error)
    }
  }

  private struct NewFile {
    var id: Int64
    var source: SealedUpload
    var version: Validator?
  }

  /// Makes the keys of files that are new to the journal, and writes them in one transaction: one for each file would take
  /// as long as sending a small one. A file that a check has compared gets none, since it may be at the destination; nor
  /// does one whose key takes long to make, or that no later run goes on with.
  func makeSeals(_ works: [ClaimedItem]) async throws(UploadError) {
    let new = works.compactMap { work -> NewFile? in
      guard let id = work.claim.newID, let source = work.item.sealed, source.goesOn(work.item.info),
        !source.sealing.isSlow
      else { return nil }
      return NewFile(id: id, source: source, version: work.item.info.validator)
    }
    if new.isEmpty { return }
    let compared: Set<Int64>
    do { compared = try await journal.comparisons.uploads(among: new.map(\.id)) } catch {
      throw UploadError(journal: error)
    }
    var made: [(file: NewFile, seal: FileSeal)] = []
    for file in new where !compared.contains(file.id) { made.append((file, try await file.source.sealing.newSeal())) }
    if made.isEmpty { return }
    try await keep(made.map { ($0.file.id, $0.seal) })
    for (file, seal) in made { file.source.prepare(seal, for: file.version, file.id) }
  }

  /// The digest of the ciphertext that the journal keeps, with which a later check compares that of the destination; nil: the
  /// destination tells none.
  private var digestOfSealed: Digest.Algorithm? { destination.state.existing.digestOfSealed }

  /// The facts that the journal keeps about the bytes of an upload that is done, whose key is forgotten.
  func content(of sealed: SealedUpload, _ result: UploadResult) async -> SealedContent {
    let version = uploader.destination.traits.provesVersions ? result.state["version"] ?? result.state["etag"] : nil
    return SealedContent(await sealed.digest(), version: version)
  }

  /// Ends a sealed item that a check has read back from the destination, as of a card that another machine has sent: the
  /// same bytes would be sealed under another key, and the file there counts as another one. nil: it is to be sent.
  func evidenceOfCheck(
    _ work: ClaimedItem, _ id: Int64, goingOnWith entry: JournalEntry?
  ) async -> StoredEvidence? {
    let (item, target) = (work.item, work.item.target)
    // A file whose key was made with those of others is one that no check has compared.
    guard !target.overwrite, entry?.session == nil, item.sealed?.hasPreparedSeal != true else { return nil }
    // The upload gets the same error and handles it.
    let check = ContentCheck(uploader, journal, downloads: true, isAnew: false)
    guard let evidence = try? await check.evidence(of: item) else { return nil }
    let result = UploadResult(location: target.url.normalized.description, length: item.info.length)
    journal.done(id, result, keepsChecksums: false, replaces: false, sealed: nil)
    destination.state.noteStored()
    return evidence
  }

  /// If an item failed because there is a file of its length under its opaque name, that is what an earlier run has sent,
  /// which was killed before it knew, or another machine: no file has that name unless it has that path. So an index may name it.
  func noteTaken(_ item: UploadItem, _ error: UploadError) async {
    guard let path = item.target.unsealedPath, error.isNameTaken else { return }
    // If the server or the journal fails now, the next run finds the file again.
    guard (try? await uploader.isThere(item.target, location: nil)) == true else { return }
    let file = UnindexedFile(id: 0, path: path, length: item.info.length, modified: item.info.modified)
    try? await journal.sealedNames.foundTaken(file, at: destination.id)
  }

  /// Deletes what the server has of an earlier upload. A file that is whole there stays, and the server refuses another one
  /// of its name.
  private func giveUp(_ session: UploadSession, _ id: Int64) async {
    let ledger = JournalLedger(journal, id)
    if await uploader.hasWhole(session) {
      ledger.restarted()
    } else {
      await destination.engine.discard(session, ledger)
    }
  }

  /// The seal of an earlier run; nil: the journal does not have it, or it is for another passphrase.
  private func seal(
    of entry: JournalEntry, for source: SealedUpload, _ info: BlobInfo
  ) async throws(UploadError) -> FileSeal? {
    if !source.goesOn(info) { return nil }
    let (box, key): (String?, [UInt8]?)
    do { (box, key) = (try await journal.seals.box(of: entry.id), try await journal.seals.knownKey()) } catch {
      throw UploadError(journal: error)
    }
    guard let key, let boxed = box.flatMap({ Base64.decode($0) }), let seal = FileSeal(unboxing: boxed, under: key),
      await source.sealing.isFor(seal)
    else { return nil }
    return seal
  }

  /// Whether the source certainly has every byte that earlier runs have sealed and sent. If only where it is kept has
  /// changed, all of these are compared, also those that the server does not have.
  private func isUnchanged(_ item: UploadItem, _ earlier: Continuation) async throws(UploadError) -> Bool {
    guard let sent = earlier.doubted else { return true }
    guard earlier.entry?.sentLimit != nil, let end = sent.map(\.end).max() else { return false }
    do {
      return try await readingSource { [item] cancel, noteRead throws(BlobError) in
        try sent.match(item.source, item.info, upTo: end, cancel, noteRead)
      }
    } catch {
      // The version has changed once more. The upload finds that out by itself.
      if (error.cause as? BlobError)?.code == .changed { return false }
      throw error
    }
  }
}
