import BlobUpload
import Blobs
import Synchronization

/// Finds out whether the destination shows the very files of a source, as a server does whose folder this computer has
/// mounted, or which serves symbolic links to them: deleting such a file here would delete the only one.
///
/// Each file gets another name for a moment, and the destination is asked for its first byte meanwhile. Memory grows by the
/// folders of the sources.
final class SameFolders: Sendable {
  private struct Pair: Hashable {
    /// With a slash at its end.
    let here: BytePath
    /// With a slash at its end; empty: the folder of the destination itself.
    let there: BytePath
  }
  /// The folders of which one file was looked for under its other name.
  private let asked = Mutex<Set<Pair>>([])
  private let check: ContentCheck

  init(_ check: ContentCheck) { self.check = check }

  /// Throws if the destination shows the file itself, or if that cannot be found out. Returns the version that the file has
  /// afterwards, since its renaming changes it, or the reason why it stays.
  func probe(_ file: CheckedFile) async throws(UploadError) -> Result<FileStamp, SetAsideFile.Failure> {
    let path = file.item.identity
    let pair = Pair(here: path.folder, there: file.item.target.path.folder)
    let isFirst = asked.withLock { $0.insert(pair).inserted }
    let aside: SetAsideFile
    do throws(SetAsideFile.Failure) {
      aside = try await Self.threads.run { () throws(SetAsideFile.Failure) in
        try SetAsideFile(path) { $0.validator == file.item.info.validator }
      }
    } catch {
      return .failure(error)
    }
    let shown = await Self.result { () async throws(UploadError) in try await ask(file, aside, isFirst: isFirst) }
    // The name is given back also where the user has interrupted the question.
    let given = await Self.threads.run {
      Result { () throws(SetAsideFile.Failure) in try aside.giveBack() }
    }
    do throws(UploadError) {
      try shown.get()
    } catch {
      if error.side == .cancelled || error.endsQueue { throw error }
      throw UploadError(
        .giveUp, .file,
        "\(path.folder): while \(path.name) had another name here, it was not readable at the destination, which may show "
          + "the very files of this folder (\(error.message)); a copy must be in another place first: nothing is deleted "
          + "here")
    }
    return given
  }

  private func ask(_ file: CheckedFile, _ aside: SetAsideFile, isFirst: Bool) async throws(UploadError) {
    if isFirst {
      if let kind = RemoteMount(device: aside.stamp.device)?.kind {
        throw UploadError(
          .giveUp, .file,
          "it is mounted by a program (\(kind)), so that nobody can tell whether the destination shows the same files")
      }
      // A file at the destination with the other name is this very file, though the server may send it under its own name
      // from memory.
      if try await check.isThere(file.item.target.path.folder.appending(aside.away.name)) {
        throw UploadError(.giveUp, .file, "it is there as \(aside.away.name)")
      }
    }
    if try await !check.isReadable(file) { throw UploadError(.giveUp, .file, "it was not there") }
  }

  private static let threads = BlockingPool("fullbore-rename", threads: 1, patience: .seconds(10))

  private static func result(_ ask: () async throws(UploadError) -> Void) async -> Result<Void, UploadError> {
    do throws(UploadError) { return .success(try await ask()) } catch { return .failure(error) }
  }
}
