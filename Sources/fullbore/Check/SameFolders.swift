import BlobUpload
import Blobs
import Platform
import Synchronization

/// Finds out whether the destination shows the very files of a source, as a server does whose folder this computer has mounted:
/// deleting such a file here would delete the only one.
///
/// A new file is made in each folder of the sources and looked for in the folder at the destination. Memory grows by the
/// paths of the folders.
final class SameFolders: Sendable {
  private struct Pair: Hashable {
    /// With a slash at its end.
    let here: BytePath
    /// With a slash at its end; empty: the folder of the destination itself.
    let there: BytePath
  }
  private let pairs = Mutex<Set<Pair>>([])
  private static let content = Array("made by fullbore to find out whether two folders are one\n".utf8)

  func note(_ file: CheckedFile) {
    let pair = Pair(here: file.item.identity.folder, there: file.item.target.path.folder)
    _ = pairs.withLock { $0.insert(pair) }
  }

  /// Throws if a source and the destination are the same folder, or if no file can be made in a folder here.
  func check(_ run: PushRun, _ check: ContentCheck) async throws(UploadError) {
    // The signature of a URL is for one file only.
    if run.destination.endpoint.query != nil { return }
    for pair in pairs.withLock({ $0 }) {
      let name = BytePath("fullbore-\(UInt64.random(in: .min ... .max)).tmp")
      let file = BytePath(pair.here.bytes + name.bytes)
      if let reason = await Self.onThread({ Self.make(file) }) {
        throw UploadError(.giveUp, .file, "\(pair.here): \(reason): nothing is deleted here")
      }
      let target = run.destination.target(
        BytePath(pair.there.bytes + name.bytes), length: Int64(Self.content.count))
      let result = await Self.result { () async throws(UploadError) in try await check.isThere(target) }
      _ = await Self.onThread { file.withCString { unlink($0) == 0 ? nil : String(cString: strerror(errno)) } }
      if try result.get() {
        throw UploadError(
          .giveUp, .file,
          "\(pair.here): the destination shows the very files of this folder, so that nothing is deleted here: a copy "
            + "must be in another place first")
      }
    }
  }

  private static func result(_ ask: () async throws(UploadError) -> Bool) async -> Result<Bool, UploadError> {
    do throws(UploadError) { return .success(try await ask()) } catch { return .failure(error) }
  }

  /// The reason for which the call failed; nil: it did not.
  private static func onThread(_ call: @escaping @Sendable () -> String?) async -> String? {
    switch await SourceReads().run({ _, _ in call() }) {
    case .done(let reason): reason
    case .cancelled: "interrupted"
    case .stuck: SourceReads().complaint
    }
  }

  /// Blocks. nil: the file is made.
  private static func make(_ file: BytePath) -> String? {
    // The server may run as another user.
    let descriptor = file.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644) }
    if descriptor < 0 { return String(cString: strerror(errno)) }
    defer { close(descriptor) }
    return write(descriptor, content, content.count) == content.count ? nil : String(cString: strerror(errno))
  }
}
