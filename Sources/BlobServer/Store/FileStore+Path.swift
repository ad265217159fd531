import Blobs

// The store works in the folder that it has opened. If another program moves that folder, the store follows it, until
// there is another folder at its path.
extension FileStore {
  package func lookAgain() -> [String] {
    let now: Folder
    do throws(ServerError) {
      now = try Folder(path)
      if FileIdentity(try now.status()) == FileIdentity(try root.status()) { return backAtItsPath() }
    } catch {
      return tell("\(path) cannot be opened any more: \(error.message)")
    }
    do throws(ServerError) {
      return try serve(now)
    } catch {
      return tell("\(path) is another folder now, which cannot be served: \(error.message)")
    }
  }

  /// The folder at `path`. Throws 403 for the server's own folder.
  func folder(_ path: ServedPath, creating: Bool = false) throws(ServerError) -> Folder {
    try refuseOwnFolder(path)
    return try root.folder(path, creating: creating)
  }

  /// Throws 403 for a path in the server's own folder. `ServedPath` refuses its name, but some file systems find it under
  /// other names too, as FAT under `FULLBO~1`.
  func refuseOwnFolder(_ path: ServedPath) throws(ServerError) {
    guard let first = path.components.first, let named = try root.status(first) else { return }
    var own = own.withLock { $0?.identity }
    // A read-only server has not opened it.
    if own == nil { own = try root.status(ServedPath.storeName).map { FileIdentity($0) } }
    if FileIdentity(named) == own {
      throw ServerError(403, "\(path) is kept for unfinished uploads", kind: .reservedName)
    }
  }

  private func serve(_ now: Folder) throws(ServerError) -> [String] {
    var found = ["\(path) is another folder now: it is served from here on, and unfinished uploads start again"]
    try own.withLock { (own) throws(ServerError) in
      if own != nil {
        let fresh = try StateFolder(in: now, path)
        let names = try fresh.folder.names()
        forgetUploads()
        found += takeUp(names, fresh.folder)
        own = fresh
      }
      opened.withLock { $0 = now }
    }
    trouble.withLock { $0 = nil }
    deleteExcessRecords()
    guard let store else { return found }
    do throws(ServerError) {
      try measure(store)
    } catch {
      if !interruption.isCancelled { found.append("\(path) could not be measured: \(error.message)") }
    }
    return found
  }

  /// Each reason is told once, until another one takes its place.
  private func tell(_ reason: String) -> [String] {
    let isNew = trouble.withLock { trouble in
      defer { trouble = reason }
      return trouble != reason
    }
    if !isNew { return [] }
    let isDeleted = root.isDeleted
    return [
      reason
        + (isDeleted
          ? "; the folder that was served was deleted, and requests fail until there is another one"
          : "; the server goes on in the folder that was there, wherever it is now")
    ]
  }

  private func backAtItsPath() -> [String] {
    let wasAway = trouble.withLock { trouble in
      defer { trouble = nil }
      return trouble != nil
    }
    return wasAway ? ["the served folder is at its path again: \(path)"] : []
  }
}
