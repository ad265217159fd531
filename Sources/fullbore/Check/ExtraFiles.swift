import BlobUpload
import Blobs
import Synchronization

/// Finds files at the destination that are not among the sources, in the folders to which a push would write.
///
/// Memory grows by 16 bytes for a file and by each folder's path. A folder is listed only if the server does not tell how many
/// files it has, or tells another number.
final class ExtraFiles: Sendable {
  private struct Folder {
    /// The files that were found at the destination.
    var present = 0
    /// A folder that was walked has a file that belongs there. Of a file that was named alone, the others there are not missing.
    var isWalked = false
    /// Whether a file is there was not told.
    var isUnsure = false
  }
  private let folders = Mutex<[BytePath: Folder]>([:])
  private let names = ClaimedNames()
  private let options: CheckOptions
  /// The sources as they were given.
  private let named: Set<BytePath>
  /// Folders of one request.
  private static let batch = 1000

  init(_ options: CheckOptions) { (self.options, named) = (options, Set(options.push.given)) }

  func note(_ file: CheckedFile) {
    let path = file.item.target.path
    let isWalked = !named.contains(file.item.identity)
    // Servers list no names that begin with a dot.
    let isHidden = path.name.bytes.first == UInt8(ascii: ".")
    folders.withLock { folders in
      if names.isTaken(path, by: path) { return }
      _ = names.take(path, for: path)
      var folder = folders[path.parent] ?? Folder()
      folder.isWalked = folder.isWalked || isWalked
      switch file.result {
      case .missing: break
      case .sealed(let sealed): _ = names.take(sealed, for: sealed); if !isHidden { folder.present += 1 }
      case .notComparable: folder.isUnsure = true
      case .same, .different, .unreadable: if !isHidden { folder.present += 1 }
      }
      folders[path.parent] = folder
    }
  }

  /// Whether the file of this path at the destination was compared.
  func isNoted(_ path: BytePath) -> Bool { names.isTaken(path, by: path) }

  /// Reports what only the destination has.
  func tell(_ check: ContentCheck, _ report: CheckReport) async throws(UploadError) {
    let folders = folders.withLock { $0 }.filter(\.value.isWalked).sorted { $0.key < $1.key }
    for start in stride(from: 0, to: folders.count, by: Self.batch) {
      let some = folders[start..<min(start + Self.batch, folders.count)]
      let counts = try await check.counts(in: some.map(\.key))
      for ((path, folder), count) in zip(some, counts) {
        if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
        if let count, !folder.isUnsure, count <= folder.present { continue }
        try await list(path, check, report)
      }
    }
  }

  private func list(_ folder: BytePath, _ check: ContentCheck, _ report: CheckReport) async throws(UploadError) {
    let isListed = try await check.names(in: folder) { found in
      for name in found where !(options.push.seal.hasNames && SealedNames.isIndex(name)) {
        let path = folder.isEmpty ? name : folder.appending(name)
        if !names.isTaken(path, by: path), isMeant(path, name) { report.extra(path) }
      }
    }
    if !isListed { report.unlisted(folder) }
  }

  /// Whether a push could have sent a file of that name.
  private func isMeant(_ path: BytePath, _ name: BytePath) -> Bool {
    let tree = options.push.tree
    if tree.passesOver(path, name, isFolder: false) { return false }
    return tree.filter.includes.isEmpty || tree.filter.includes.contains { tree.filter.includes($0, path, name) }
  }
}

extension BytePath {
  /// The path without its last component and the slash before it; empty: there is none.
  var parent: BytePath {
    var bytes = bytes.dropLast(name.bytes.count)
    while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return BytePath(bytes)
  }
}
