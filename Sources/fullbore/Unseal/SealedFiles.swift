import BlobUpload
import Blobs
import Platform

/// The files to unseal, on this machine or at a server. Paths are relative to the folder that is unsealed, and may be
/// hostile.
protocol SealedFiles: Sendable {
  /// Calls `take` with the entries of a folder; an empty path is the folder that is unsealed.
  func list(
    _ folder: BytePath, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError)

  /// The file at a path, which is opened later.
  func source(_ path: BytePath) async throws(UploadError) -> any BlobSource
}

extension StoredFiles: SealedFiles {}

/// A folder of this machine. Symbolic links in it are left out.
struct LocalFiles: SealedFiles {
  let folder: BytePath

  func list(
    _ folder: BytePath, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    let path = folder.isEmpty ? self.folder : self.folder.appending(folder)
    let read = await SourceReads().run { cancel, noteProgress in
      Self.entries(of: path, follow: folder.isEmpty, cancel, noteProgress)
    }
    switch read {
    case .done(let entries): try await take(try entries.get())
    case .cancelled: throw UploadError(.giveUp, .cancelled, "interrupted")
    case .stuck: throw UploadError(.giveUp, .source, "\(path): \(SourceReads().complaint)")
    }
  }

  func source(_ path: BytePath) -> any BlobSource { FileSource(folder.appending(path)) }

  private static func entries(
    of path: BytePath, follow: Bool, _ cancel: Cancellation, _ noteProgress: () -> Void
  ) -> Result<[ListedEntry], UploadError> {
    func failure(_ number: Int32) -> Result<[ListedEntry], UploadError> {
      .failure(UploadError(.giveUp, .source, "\(path): \(String(cString: strerror(number)))"))
    }
    guard let folder = OpenFolder(path, "", follow: follow) else { return failure(errno) }
    var entries: [ListedEntry] = []
    while !cancel.isCancelled, let name = folder.nextName() {
      noteProgress()
      var status = stat()
      if folder.look(at: name, &status, follow: false) != 0 { continue }
      let kind = status.st_mode & S_IFMT
      if kind == S_IFREG || kind == S_IFDIR { entries.append(ListedEntry(name, isFolder: kind == S_IFDIR)) }
    }
    return folder.error == 0 ? .success(entries) : failure(folder.error)
  }
}
