import Blobs
import Platform

/// The state of a path at which a file is to be published.
package struct TargetState: Sendable {
  /// The file currently published there; nil: there is none.
  package var item: StoredItem?
  /// The reason why no new file can be published there; nil: none is known before the bytes arrive.
  package var refusal: ServerError?
  /// Clients may learn nothing of `item`, except that it is there.
  package var isConcealed = false

  package init(item: StoredItem? = nil, refusal: ServerError? = nil, isConcealed: Bool = false) {
    (self.item, self.refusal, self.isConcealed) = (item, refusal, isConcealed)
  }
}

extension ExistingRule {
  /// Throws if bytes of this length (nil: unknown) cannot be published at `path`. The folder does not matter if an
  /// existing file is kept and the bytes are only compared with it.
  func admit(_ target: TargetState, at path: ServedPath, length: Int64?) throws(ServerError) {
    do throws(ServerError) {
      if let item = target.item {
        try admit(item, at: path, length: length)
      } else {
        try checkVersion(nil, at: path)
      }
    } catch {
      throw target.isConcealed ? error.concealed(at: path) : error
    }
    if let refusal = target.refusal, target.item == nil || replaces { throw refusal }
  }
}

extension ServedFolder {
  /// The state of a path at which a file is to be published, as `PublishedFiles.target`.
  func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState {
    if let path, path.isRoot { return TargetState(item: try item(at: path)) }
    var place = path?.parent ?? folder
    do throws(ServerError) {
      let (folder, refusal) = try open(place)
      guard let path, let status = try folder.status(path.name) else { return TargetState(refusal: refusal) }
      return TargetState(item: try Self.item(status, path, in: folder), refusal: refusal)
    } catch {
      guard error.status == 404 else { throw error }
    }
    // Missing folders are created at publication, inside the nearest existing one.
    while !place.isRoot {
      place = place.parent
      do throws(ServerError) {
        return TargetState(refusal: try open(place).refusal)
      } catch {
        guard error.status == 404 else { throw error }
      }
    }
    return TargetState()
  }

  /// Opens a folder. `refusal` is the reason why no file can be published in it; nil: there is none.
  private func open(_ path: ServedPath) throws(ServerError) -> (folder: Folder, refusal: ServerError?) {
    try refuseOwnFolder(path)
    let onSameMount = try root.folder(onSameMount: path)
    let folder = if let onSameMount { onSameMount } else { try root.folder(path) }
    guard let device = device else { return (folder, nil) }
    // A subvolume is not a mount, but has a device number of its own.
    let isElsewhere = try folder.status().st_dev != device
    if isElsewhere || onSameMount == nil {
      let place =
        isElsewhere
        ? "on another file system than the served folder"
        : "another mount than the served folder (as by mount --bind), into which the system moves no file"
      return (
        folder, ServerError(403, "\(Self.name(path)) is \(place): start a server of its own for it", kind: .notWritable)
      )
    }
    guard let problem = folder.problemOfWriting() else { return (folder, nil) }
    let reason = String(cString: strerror(problem))
    // Of a file system that has become read-only, as after a failure of its disk, the client may hope for better.
    let status = problem == EROFS ? 500 : 403
    return (
      folder, ServerError(status, "the server may not write into \(Self.name(path)): \(reason)", kind: .notWritable)
    )
  }

  private static func name(_ path: ServedPath) -> String { path.isRoot ? "the served folder" : "\(path)" }
}

extension Folder {
  /// The error number of creating files in the folder; nil: the server may create them, or this is unknown.
  func problemOfWriting() -> Int32? {
    if faccessat(number, ".", W_OK | X_OK, AT_EACCESS) == 0 { return nil }
    let problem = errno
    // Some sandboxes refuse this system call with EPERM because they do not know it. They know the older call, without
    // flags.
    if problem == EPERM, faccessat(number, ".", W_OK | X_OK, 0) == 0 { return nil }
    return [EACCES, EPERM, EROFS].contains(problem) ? problem : nil
  }
}
