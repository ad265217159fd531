import BlobUpload
import Blobs
import Platform
import Synchronization

/// Finds out whether the destination shows the very files of a source, as a server does whose folder this computer has
/// mounted, or which serves symbolic links to them: deleting such a file here would delete the only one.
///
/// One file of each folder gets another name for a moment, and is read back from the destination meanwhile. Memory grows by
/// the folders of the sources.
final class SameFolders: Sendable {
  private struct Pair: Hashable {
    /// With a slash at its end.
    let here: BytePath
    /// With a slash at its end; empty: the folder of the destination itself.
    let there: BytePath
  }
  /// The smallest proved file of each folder.
  private let samples = Mutex<[Pair: CheckedFile]>([:])

  /// `file` is proved. A sealed file is none of the files at the destination, whose bytes are others.
  func note(_ file: CheckedFile) {
    if file.item.isSealed { return }
    let pair = Pair(here: file.item.identity.folder, there: file.item.target.path.folder)
    samples.withLock { samples in
      if let other = samples[pair], other.item.info.length ?? 0 <= file.item.info.length ?? 0 { return }
      samples[pair] = file
    }
  }

  /// Throws if a source and the destination are the same folder, or if that cannot be found out. Renaming gives the files
  /// other versions, which `proved` takes note of.
  func check(_ check: ContentCheck, _ proved: ProvedFiles) async throws(UploadError) {
    for (pair, file) in samples.withLock({ $0 }) {
      do throws(UploadError) {
        try await Self.probe(file, check, proved)
      } catch {
        var error = error
        error.message = "\(pair.here): \(error.message): nothing is deleted here"
        throw error
      }
    }
  }

  private static func probe(
    _ file: CheckedFile, _ check: ContentCheck, _ proved: ProvedFiles
  ) async throws(UploadError) {
    let path = file.item.identity
    let away = path.folder.appending(
      BytePath(path.name.bytes + Array(".fullbore-\(UInt32.random(in: .min ... .max))".utf8)))
    let (before, renamed) = try await threads.run { () throws(UploadError) in try begin(path, away, proved) }
    let result = await result { () async throws(UploadError) in
      // A file at the destination with the other name is this very file, though the server may send it under its own name
      // from memory.
      if try await check.isThere(file.item.target.path.folder.appending(away.name)) {
        throw UploadError(.giveUp, .file, "it is there as \(away.name)")
      }
      try await check.readBack(file, from: FileSource(away), renamed.info)
    }
    // The name is given back also where the user has interrupted the comparison.
    try await threads.run { () throws(UploadError) in try end(path, away, before, proved) }
    do throws(UploadError) {
      try result.get()
    } catch {
      if error.side == .cancelled || error.endsQueue { throw error }
      throw UploadError(
        .giveUp, .file,
        "while \(path.name) had another name here, it was not readable at the destination, which may show the very "
          + "files of this folder (\(error.message)); a copy must be in another place first")
    }
  }

  private static let threads = BlockingPool("fullbore-rename", threads: 1, patience: .seconds(10))

  private static func result(_ ask: () async throws(UploadError) -> Void) async -> Result<Void, UploadError> {
    do throws(UploadError) { return .success(try await ask()) } catch { return .failure(error) }
  }

  /// Renames a file that is still the version that was proved. Returns its stamps of before and after. Blocks.
  private static func begin(
    _ path: BytePath, _ away: BytePath, _ proved: ProvedFiles
  ) throws(UploadError) -> (FileStamp, FileStamp) {
    let stamp = try stamp(path)
    if let kind = RemoteMount(device: stamp.device)?.kind {
      throw UploadError(
        .giveUp, .file,
        "it is mounted by a program (\(kind)), so that nobody can tell whether the destination shows the same files")
    }
    if !proved.has(path, stamp.validator) { throw changed(path) }
    try rename(path, to: away)
    do throws(UploadError) { return (stamp, try Self.stamp(away)) } catch {
      try? rename(away, to: path)
      throw error
    }
  }

  /// Gives the file its name back, and notes the version that it has then. Blocks.
  private static func end(
    _ path: BytePath, _ away: BytePath, _ before: FileStamp, _ proved: ProvedFiles
  ) throws(UploadError) {
    do throws(UploadError) { try rename(away, to: path) } catch {
      throw UploadError(.giveUp, .file, "\(path.name) is now named \(away.name), since this failed: \(error.message)")
    }
    var stamp = try stamp(path)
    proved.renew(path, stamp.validator)
    // The change time is that of the renaming.
    stamp.changed = before.changed
    if stamp != before { throw changed(path) }
  }

  private static func stamp(_ path: BytePath) throws(UploadError) -> FileStamp {
    var status = stat()
    if path.withCString({ lstat($0, &status) }) != 0 { throw failed("look at \(path.name)") }
    return FileStamp(status, at: path)
  }

  private static func rename(_ from: BytePath, to new: BytePath) throws(UploadError) {
    let status = from.withCString { from in new.withCString { renameNew(AT_FDCWD, from, AT_FDCWD, $0) } }
    if status != 0 { throw failed("rename \(from.name)") }
  }

  private static func failed(_ call: String) -> UploadError {
    UploadError(.giveUp, .file, "\(call): \(String(cString: strerror(errno)))")
  }

  private static func changed(_ path: BytePath) -> UploadError {
    UploadError(.giveUp, .file, "\(path.name) has changed since it was proved")
  }
}
