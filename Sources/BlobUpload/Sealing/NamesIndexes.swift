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

  /// Sends indexes until every file that is at the destination is in one. A killed call leaves some that name a file twice.
  package func send() async throws(UploadError) {
    while true {
      let files: [UnindexedFile]
      do { files = try await journal.unindexed(at: destinationID, limit: NamesIndex.mostEntries) } catch {
        throw UploadError(journal: error)
      }
      if files.isEmpty { return }
      let (bytes, count) = NamesIndex.bytes(of: files, names, at: FileStamp.now)
      try await send(bytes)
      do { try await journal.indexed(files.prefix(count).map(\.id)) } catch { throw UploadError(journal: error) }
    }
  }

  /// Does the same every five minutes, until it is cancelled. What fails is tried again, and at last by the caller.
  package func sendAgainAndAgain() async {
    while (try? await Task.sleep(for: .seconds(300))) != nil { try? await send() }
  }

  private func send(_ bytes: [UInt8]) async throws(UploadError) {
    let plain = DataSource(bytes)
    let sealed = SealedSource(plain, try await sealing.newSeal(), onlyFor: plain.info.validator, keepsValidator: true)
    var info = plain.info
    info.length = sealing.length(sealing: info.length)
    var destination = uploader.destination
    destination.sealing?.names = nil
    let target = destination.target(SealedNames.newIndexName(), length: info.length)
    let result = try await uploader.upload(sealed, info, to: target)
    if verifies { try await uploader.verify(sealed, info, at: target, location: result.location) }
  }
}

extension StoredFiles {
  /// The key of the names from an index in the folder of the destination. nil: there is no index, or the server lists no
  /// files. Throws if none of the identities opens an index.
  package func namesKey(_ identities: [SealIdentity]) async throws(UploadError) -> SealedNames? {
    var found: [BytePath] = []
    let isListed = try await lists("") { (entries: [ListedEntry]) async throws(UploadError) in
      found += entries.filter { !$0.isFolder && SealedNames.isIndex($0.name) }.map(\.name).prefix(Self.mostTried)
    }
    if !isListed { return nil }
    var failure: UploadError?
    for name in found.prefix(Self.mostTried) {
      let source = UnsealedSource(try await source(name), with: identities)
      do throws(UploadError) {
        return try await readingSource { cancel, _ throws(BlobError) in
          try NamesIndex.read(source, cancel) { _, _ in false }.names
        }
      } catch {
        if error.side == .cancelled { throw error }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
    return nil
  }

  private static let mostTried = 16
}
