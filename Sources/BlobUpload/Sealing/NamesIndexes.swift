import BlobCrypto
import Blobs

/// Sends the indexes of a destination whose names are sealed. The journal knows which files no index names yet, so that a
/// later run sends what this one did not.
package struct NamesIndexes: Sendable {
  private let uploader: Uploader
  private let journal: Journal
  private let destinationID: Int64
  private let sealing: Sealing
  private let names: SealedNames
  /// Each index is read back.
  private let verifies: Bool

  /// nil: the names are not sealed.
  package init?(_ uploader: Uploader, _ journal: Journal, _ destinationID: Int64, verifies: Bool) {
    guard let sealing = uploader.destination.sealing, let names = sealing.names else { return nil }
    (self.uploader, self.journal, self.destinationID) = (uploader, journal, destinationID)
    (self.sealing, self.names, self.verifies) = (sealing, names, verifies)
  }

  /// Sends indexes until every file that is at the destination is in one. They take the places of lost ones first, so that
  /// nothing is left of these. A killed call leaves some that name a file twice.
  package func send() async throws(UploadError) {
    var lost: [SentIndex] = []
    while true {
      let files = try await read { sealed async throws(JournalError) in
        try await sealed.unindexed(at: destinationID, limit: NamesIndex.mostEntries)
      }
      if lost.isEmpty {
        lost = try await read { sealed async throws(JournalError) in
          try await sealed.sentIndexes(at: destinationID, areLost: true)
        }
      }
      if files.isEmpty, lost.isEmpty { return }
      let (bytes, count) = NamesIndex.bytes(of: files, names, at: FileStamp.now)
      var index: SentIndex?
      if let old = lost.popLast() { index = try await replace(old, by: bytes) }
      if index == nil, !files.isEmpty { index = try await send(bytes, as: SealedNames.newIndexName()) }
      guard let index else { continue }
      try await read { sealed async throws(JournalError) in
        try await sealed.indexed(files.prefix(count).map(\.id), in: index, at: destinationID)
      }
    }
  }

  /// nil: the destination does not let the file be replaced.
  private func replace(_ lost: SentIndex, by bytes: [UInt8]) async throws(UploadError) -> SentIndex? {
    do throws(UploadError) {
      var index = try await send(bytes, as: lost.path, overwriting: true)
      index.id = lost.id
      return index
    } catch {
      guard let status = error.status, 400..<500 ~= status, ![401, 407, 408, 425, 429].contains(status) else {
        throw error
      }
      try await read { sealed async throws(JournalError) in try await sealed.forget(lost) }
      return nil
    }
  }

  /// Compares the indexes that this journal has sent with those that are at the destination. Returns how many files no index
  /// there names, which the next call of `send` sends. nil: this journal has sent no index, so that nothing is known.
  package func unnamed() async throws(UploadError) -> Int? {
    var lost: [SentIndex] = []
    let sent = try await read { sealed async throws(JournalError) in try await sealed.sentIndexes(at: destinationID) }
    for index in sent where try await isLost(index) { lost.append(index) }
    let count = try await read { [lost] sealed async throws(JournalError) in
      for index in lost { try await sealed.lost(index) }
      return try await sealed.unindexed(at: destinationID, limit: .max).count
    }
    return sent.isEmpty && count == 0 ? nil : count
  }

  /// The opaque paths of the files that indexes of this journal name. Call `unnamed` before.
  package func named(_ take: ([BytePath]) -> Void) async throws(UploadError) {
    var last = Int64.min
    while true {
      let some = try await read { [last] sealed async throws(JournalError) in
        try await sealed.named(at: destinationID, after: last, limit: NamesIndex.mostEntries)
      }
      if some.paths.isEmpty { return }
      take(some.paths.map { names.path(of: $0) })
      last = some.last
    }
  }

  /// Sends them for some seconds at most, also in a task that was cancelled: what an interrupted run has sent gets its names.
  package func sendAtEnd() async {
    let sending = Task { try? await send() }
    let limit = Task {
      try await Task.sleep(for: .seconds(5))
      sending.cancel()
    }
    await sending.value
    limit.cancel()
  }

  private func read<Value: Sendable>(
    _ body: @Sendable (JournalSealedNames) async throws(JournalError) -> Value
  ) async throws(UploadError) -> Value {
    do throws(JournalError) { return try await body(journal.sealedNames) } catch { throw UploadError(journal: error) }
  }

  /// Whether the index is gone, or has other bytes now. The server's answer is not one that was kept.
  private func isLost(_ index: SentIndex) async throws(UploadError) -> Bool {
    do throws(UploadError) {
      _ = try await uploader.verify(
        .digest(index.sha256, .sha256), at: destination.target(index.path, length: nil), location: index.location)
      return false
    } catch {
      // A difference has no status. Another refusal says nothing about the index.
      if error.side == .file, error.cause == nil, [nil, 404, 410].contains(error.status) { return true }
      throw error
    }
  }

  /// Calls `send` every five minutes, until the task is cancelled. An index that could not be sent is sent by the next
  /// call; the caller makes the last one.
  package func sendAgainAndAgain() async {
    while (try? await Task.sleep(for: .seconds(300))) != nil { try? await send() }
  }

  private var destination: UploadDestination { uploader.destination.withoutSealedNames }

  private func send(
    _ bytes: [UInt8], as name: BytePath, overwriting: Bool = false
  ) async throws(UploadError) -> SentIndex {
    let plain = DataSource(bytes)
    let sealed = SealedSource(plain, try await sealing.newSeal(), onlyFor: plain.info.validator, keepsValidator: true)
    var info = plain.info
    info.length = sealing.length(sealing: info.length)
    var target = destination.target(name, length: info.length)
    target.overwrite = overwriting
    let digest = try await readingSource { cancel, _ throws(BlobError) in
      let digest = Digest(.sha256)
      let reader = try sealed.open(at: 0, cancel)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      while case let count = try reader.readChecked(into: buffer), count > 0 {
        digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
      return digest.value()
    }
    let result = try await uploader.upload(sealed, info, to: target)
    if verifies { try await uploader.verify(sealed, info, at: target, location: result.location) }
    return SentIndex(path: name, location: result.location, sha256: digest)
  }
}

extension UploadDestination {
  /// The destination as the indexes are sent to it and read from it, whose names are not sealed.
  package var withoutSealedNames: UploadDestination {
    var destination = self
    destination.sealing?.names = nil
    return destination
  }

  /// The place in the journal, which all pushes to this URL share.
  package var place: String {
    JournalDestination(endpoint: endpoint.text, protocolName: uploadProtocol.name).place
  }
}

extension StoredFiles {
  /// The key of the names from the indexes in the folder of the destination. nil: there is no index, or no such folder. Throws
  /// if the server lists no files, with the cause `UnlistedFolder`, if none of the identities opens an index, and if the indexes
  /// have several keys: everyone who has the public key can seal an index with a key of his own.
  ///
  /// `take` gets the entries of each index, some at a time, and may return false: the rest of that index is not read then.
  package func namesKey(
    _ identities: [SealIdentity], _ take: @escaping @Sendable ([NamesIndex.Entry]) -> Bool = { _ in false }
  ) async throws(UploadError) -> SealedNames? {
    var (known, failure): ((names: SealedNames, index: BytePath)?, UploadError?)
    for name in try await indexes() {
      let source = UnsealedSource(try await source(name), with: identities)
      do throws(UploadError) {
        let names = try await readingSource { cancel, _ throws(BlobError) in
          try NamesIndex.read(source, cancel) { _, entries in take(entries) }.names
        }
        guard let first = known else {
          known = (names, name)
          continue
        }
        if first.names.key == names.key { continue }
      } catch {
        if error.side == .cancelled { throw error }
        failure = failure ?? error
        continue
      }
      throw UploadError(
        .giveUp, .file,
        "\(known?.index ?? "") and \(name) have two keys: either two machines have sent files there with a key of their own, or "
          + "somebody else has put an index there. Look at both with 'age -d -i FILE', and move those of one key to another folder"
      )
    }
    if known == nil, let failure { throw failure }
    return known?.names
  }

  private func indexes() async throws(UploadError) -> [BytePath] {
    var found: [BytePath] = []
    do throws(UploadError) {
      try await list("") { (entries: [ListedEntry]) async throws(UploadError) in
        found += entries.filter { !$0.isFolder && SealedNames.isIndex($0.name) }.map(\.name)
          .prefix(Self.mostIndexes - found.count)
      }
    } catch {
      // The first push makes the folder.
      if error.status == 404 { return [] }
      throw error
    }
    return found
  }

  private static let mostIndexes = 10_000
}
