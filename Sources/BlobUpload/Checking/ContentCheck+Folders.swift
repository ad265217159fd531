import BlobHTTP
import Blobs

// Files at the destination that no source has.
extension ContentCheck {
  /// The numbers of files in these folders, relative to the destination, as far as the server tells them; nil: it does not.
  /// Names that begin with a dot do not count.
  package func counts(in folders: [BytePath]) async throws(UploadError) -> [Int?] {
    guard let place = queriedFolder else { return folders.map { _ in nil } }
    let questions = folders.map { folder in
      VersionQuery.Question(name: folder.isEmpty ? "./" : HTTPURL.encode(folder.bytes) + "/")
    }
    let answers = try await uploader.patiently("\(place)") { () async throws(UploadError) in
      try await presence.ask(questions, at: place, uploader.context())
    }
    guard let answers else { return folders.map { _ in nil } }
    return answers.map { answer in
      switch answer {
      case .folder(let files): files
      case .nothing: 0
      case .file, .refused: nil
      }
    }
  }

  /// Calls `take` with the names of the files in a folder, page by page. Returns false if the server does not list it.
  package func names(
    in folder: BytePath, _ take: ([BytePath]) -> Void
  ) async throws(UploadError) -> Bool {
    let place = uploader.destination.endpoint.folder
    let url = folder.isEmpty ? place : place.appending(pathBytes: folder.bytes + [UInt8(ascii: "/")])
    do throws(UploadError) {
      return try await uploader.patiently("\(url)") { () async throws(UploadError) in
        try await uploader.destination.uploadProtocol.listEntries(in: url, uploader.context()) { entries in
          take(entries.filter { !$0.isFolder }.map(\.name))
        }
      }
    } catch {
      if error.endsQueue { throw error }
      // A folder that does not exist has no files.
      return error.isOfMissingFolder
    }
  }
}
