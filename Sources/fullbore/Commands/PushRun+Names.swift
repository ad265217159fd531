import BlobCrypto
import BlobUpload
import Blobs
import Synchronization

// The indexes of sealed names, without which nothing tells what the files at the destination are called.
extension PushRun {
  func indexes(verifies: Bool) -> NamesIndexes? {
    NamesIndexes(uploader, journal, destinationID, verifies: verifies)
  }

  /// Whether a push of this journal has sent files to the place with their names sealed.
  func hasSealedNames() async throws(UploadError) -> Bool {
    let place = destination.place
    return try await destinations(in: journal).contains { $0.place == place && $0.seal?.names == true }
  }

  /// Asks for the indexes once more, and sends what is missing. Throws if the names of files are not there then.
  func sendLostNames() async throws(UploadError) {
    guard let indexes = indexes(verifies: true) else { return }
    if try await indexes.unnamed() == 0 { return }
    try await indexes.send()
    try await checkNames()
  }

  /// Throws if no index at the destination names the files that this journal has sent there.
  private func checkNames() async throws(UploadError) {
    guard let indexes = indexes(verifies: true) else { return }
    if let unnamed = try await indexes.unnamed() {
      if unnamed > 0 { throw unnamedFiles(unnamed, others: false) }
      return
    }
    throw UploadError(
      .giveUp, .file,
      "\(destination.endpoint): this journal has sent no index of the names there, so whether the files can get their names "
        + "back is not known")
  }

  /// Throws if the indexes at the destination do not name all of these files: those that this journal has sent, and those that
  /// one of `identities` opens. `count` counts the files of a path that it has not got before.
  func checkNames(
    of files: Int, _ identities: [SealIdentity], _ count: @escaping @Sendable (BytePath) -> Int
  ) async throws(UploadError) {
    guard let indexes = indexes(verifies: true) else { return }
    _ = try await indexes.unnamed()
    let named = Atomic(0)
    try await indexes.named { paths in
      for path in paths { named.add(count(path), ordering: .relaxed) }
    }
    if named.load(ordering: .relaxed) < files, !identities.isEmpty {
      var uploader = uploader
      uploader.destination = destination.withoutSealedNames
      let stored = StoredFiles(uploader, reading: transport)
      _ = try await stored.namesKey(identities) { entries in
        for entry in entries { named.add(count(entry.sealed), ordering: .relaxed) }
        return true
      }
    }
    let unnamed = files - named.load(ordering: .relaxed)
    if unnamed > 0 { throw unnamedFiles(unnamed, others: identities.isEmpty) }
  }

  /// `others`: the indexes of other journals were not read.
  private func unnamedFiles(_ count: Int, others: Bool) -> UploadError {
    UploadError(
      .giveUp, .file,
      "\(destination.endpoint): no index \(others ? "of this journal" : "there") tells what \(Quantity.plural(count, "file")) "
        + "\(count == 1 ? "is" : "are") called: 'push --check' sends the names again"
        + (others ? ", and --identity FILE reads the indexes of other journals" : ""))
  }
}
