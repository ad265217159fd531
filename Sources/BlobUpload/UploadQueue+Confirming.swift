import Blobs

// What becomes of an item that an earlier run has sent.
extension UploadQueue {
  /// Returns the error after which nothing else can succeed either.
  func confirm(
    _ work: Claimed, _ entry: JournalEntry, _ engine: UploadEngine, _ observer: some UploadObserver
  ) async -> UploadError? {
    let item = work.item
    var evidence = StoredEvidence.journal
    do {
      let isSame = try await isWhatWasSent(item, entry)
      var found: StoredEvidence? = isSame ? .journal : nil
      if isSame, entry.isSuperseded { found = try await isKept(entry, item.target) ? .length : nil }
      if found != nil, check { found = try await arrived(item, entry) }
      // Another process may send to the same place since the journal was asked.
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

  /// Whether the server has kept the upload of an entry, though another source was later sent under its name. One that keeps
  /// uploads apart has it at the upload's own URL, and nothing at the name: what has the name has replaced it.
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

  /// How it is known that the server still has what an earlier run sent: it is asked, and with `verify` it is read back
  /// too. nil: it has not.
  private func arrived(_ item: UploadItem, _ entry: JournalEntry) async throws(UploadError) -> StoredEvidence? {
    // The length of what is made while it is sent is known since then.
    var (info, target) = (item.info, item.target)
    if info.length == nil { (info.length, target.length) = (entry.sentLength, entry.sentLength) }
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
}
