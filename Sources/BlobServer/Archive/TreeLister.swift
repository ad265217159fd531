import Blobs
import Platform

/// Lists trees of folders of a store in a folder.
struct TreeLister: FolderArchiving {
  let served: ServedFolder
  let interruption: Cancellation

  package func tree(
    _ top: ServedPath, named name: String, while isWanted: () -> Bool
  ) throws(ServerError) -> FolderTree {
    let own = served.ownIdentity
    var tree = try FolderTree(try served.folder(top).status(), name: name)
    var index = 0
    // Folders are read in the order in which they were found, so nothing grows with the depth of the tree.
    while index < tree.entries.count {
      if tree.entries[index].isFolder {
        let path = index == 0 ? top : try Self.path(top, tree.path(of: index))
        try add(served.folder(path), path, at: index, to: &tree, without: own, isWanted)
      }
      index += 1
    }
    return tree
  }

  /// The path of something below a folder. Throws 413 if the path is too long, or has too many components, to be served.
  private static func path(_ top: ServedPath, _ relative: [UInt8]) throws(ServerError) -> ServedPath {
    do throws(ServerError) {
      return try top.appending(relative)
    } catch {
      let place = BytePath(top.bytes).appending(BytePath(relative))
      let shown = place.bytes.count > 200 ? "\(BytePath(place.bytes.prefix(200)))…" : "\(place)"
      throw ServerError(413, "no archive of the folder: the path of '\(shown)' is too long or too deep to be served")
    }
  }

  private func add(
    _ folder: Folder, _ path: ServedPath, at index: Int, to tree: inout FolderTree, without own: FileIdentity?,
    _ isWanted: () -> Bool
  ) throws(ServerError) {
    var names: [BytePath] = []
    // Lists leave these names out, too.
    let room = tree.room
    try folder.forEachName { if $0.bytes.first != UInt8(ascii: "."), names.count <= room { names.append($0) } }
    if names.count > room { throw FolderTree.tooMany }
    names.sort()
    var found: [(name: BytePath, status: stat)] = []
    for (number, name) in names.enumerated() {
      if interruption.isCancelled || number % 256 == 0 && !isWanted() {
        throw ServerError(503, "the list was interrupted")
      }
      guard let status = try folder.status(name) else { continue }
      let item = StoredItem(status)
      if !item.isFolder && !status.isFile || FileIdentity(status) == own { continue }
      let mode = item.isFolder ? R_OK | X_OK : R_OK
      if name.withCString({ faccessat(folder.number, $0, mode, 0) }) != 0 {
        // An archive without it would be taken for the whole folder.
        let place = BytePath(path.bytes).appending(name)
        throw ServerError(
          403, "no archive of the folder: '\(place)' cannot be read: \(String(cString: strerror(errno)))")
      }
      found.append((name, status))
    }
    // The files are opened by their paths, too. The longest name tells for all.
    if let longest = found.max(by: { $0.name.bytes.count < $1.name.bytes.count }) {
      _ = try Self.path(path, longest.name.bytes)
    }
    let archiveNames = ArchiveName.names(for: found.map(\.name))
    for ((name, status), archiveName) in zip(found, archiveNames) {
      try tree.append(status, name, archiveName, in: index)
    }
  }
}
