import BlobUpload
import Blobs
import Synchronization

/// Finds out whether the destination shows the very files of a source, as a server does whose folder this computer has
/// mounted, or which serves symbolic links to them: deleting such a file here would delete the only one.
///
/// Each file gets another name for a moment, and the destination is asked for its first byte meanwhile. A file that a program
/// of this computer has open then may be what the destination has sent. Memory grows by the folders of the sources.
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
    file.item.source.closeUntilNeeded()
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
    let isProved = if case .success(nil) = shown { true } else { false }
    let given = await Self.threads.run {
      Result { () throws(SetAsideFile.Failure) in try aside.giveBack(isProved: isProved) }
    }
    if case .success(let stamp?) = given { check.noteRenamed(file, stamp.validator) }
    do throws(UploadError) {
      if let reason = try shown.get() { return .failure(reason) }
    } catch {
      if error.side == .cancelled || error.endsQueue { throw error }
      throw UploadError(
        .giveUp, .file,
        "\(path.folder): while \(path.name) had another name here, it was not readable at the destination, which may show "
          + "the very files of this folder (\(error.message)); a copy must be in another place first: nothing is deleted "
          + "here")
    }
    return given.flatMap { stamp in
      if let stamp { return .success(stamp) }
      return .failure(
        SetAsideFile.Failure(
          reason:
            "\(path.name) has got a new version since it was sent; the one before is at the destination, and removed here"
        ))
    }
  }

  /// Returns the reason why this file stays; nil: the destination has another file.
  private func ask(
    _ file: CheckedFile, _ aside: SetAsideFile, isFirst: Bool
  ) async throws(UploadError) -> SetAsideFile.Failure? {
    if isFirst {
      if let kind = RemoteMount(device: aside.stamp.device)?.kind {
        throw UploadError(
          .giveUp, .file,
          "it is mounted by a program (\(kind)), so that nobody can tell whether the destination shows the same files")
      }
      // A file at the destination with the other name is this very file, though the server may send it under its own name
      // from memory.
      if try await check.isThere(file.item.target.path.folder.appending(aside.awayName)) {
        throw UploadError(.giveUp, .file, "it is there as \(aside.awayName)")
      }
    }
    if try await !check.isReadable(file) { throw UploadError(.giveUp, .file, "it was not there") }
    // A Fullbore server opens a file for each request.
    return check.tellsDigests ? nil : await openReason(aside)
  }

  /// Whether the destination may have sent the very file, which it keeps open, as nginx does with `open_file_cache`: the file
  /// is open then, though it has another name. Returns the reason why it stays.
  private func openReason(_ aside: SetAsideFile) async -> SetAsideFile.Failure? {
    var users = FileUsers.some
    for _ in 0..<Self.looks {
      users = await Self.threads.run { FileUsers(of: aside.away, for: .anything) }
      if users != .some { break }
      // This process, and a program that reads the file for a moment, close it soon. A cancelled wait ends the look.
      try? await Task.sleep(for: .milliseconds(20))
    }
    switch users {
    case .none: return nil
    case .some:
      return SetAsideFile.Failure(
        reason:
          "a program has \(aside.path.name) open, which may be the server of the destination, and then it is the only copy"
      )
    case .unknown:
      if await !Self.threads.run({ [check] in OwnAddress.contains(check.endpoint) }) { return nil }
      return SetAsideFile.Failure(
        reason: "the destination is on this computer, and nothing tells whether its server shows this very file")
    }
  }

  private static let looks = 15

  private static let threads = BlockingPool("fullbore-rename", threads: 1, patience: .seconds(10))

  private static func result<Answer>(
    _ ask: () async throws(UploadError) -> Answer
  ) async -> Result<Answer, UploadError> {
    do throws(UploadError) { return .success(try await ask()) } catch { return .failure(error) }
  }
}
