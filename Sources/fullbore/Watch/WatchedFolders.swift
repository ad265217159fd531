import BlobUpload
import Blobs
import Platform
import Synchronization

/// Maps the kernel's watch descriptors to folders.
final class WatchedFolders: Sendable {
  struct Place: Sendable, Hashable {
    /// The absolute path.
    let path: BytePath
    /// The path below the destination.
    let relative: BytePath
  }

  private struct State {
    var places: [Int32: Place] = [:]
    var watches: [BytePath: Int32] = [:]
    /// Number of folders that could not be watched since the last call of `takeRefused`, and the last error.
    var refused: (count: Int, errno: Int32) = (0, 0)
  }
  private let state = Mutex(State())
  private let kernel: FolderEvents
  private let roots: Set<BytePath>

  init(_ kernel: FolderEvents, roots: [BytePath]) {
    self.kernel = kernel
    self.roots = Set(roots)
  }

  var count: Int { state.withLock { $0.places.count } }

  func place(of watch: Int32) -> Place? { state.withLock { $0.places[watch] } }

  /// The place of a file or folder in a watched folder; nil: its folder is not watched.
  func place(of path: BytePath) -> Place? {
    // The path of a source may end with a slash.
    let parent = path.bytes.dropLast(path.name.bytes.count)
    return state.withLock { state in
      let watch = state.watches[BytePath(parent)] ?? state.watches[BytePath(parent.dropLast())]
      return watch.flatMap { state.places[$0] }.map {
        Place(path: path, relative: $0.relative.appending(path.name))
      }
    }
  }

  /// Whether the folder that has this path now is watched. The watch of a folder that had it before ends only when the last
  /// program has closed that folder.
  func contains(_ path: BytePath) -> Bool {
    guard let watch = state.withLock({ $0.watches[path] }) else { return false }
    return kernel.add(path, follow: roots.contains(path)) == watch
  }

  /// Call this before reading the folder, so that every change is either read or reported as an event.
  func add(_ path: BytePath, _ relative: BytePath) {
    let watch = kernel.add(path, follow: roots.contains(path))
    let number = errno
    state.withLock { state in
      guard watch >= 0 else {
        // The folder is gone or inaccessible; reading it reports the error.
        if ![ENOENT, ENOTDIR, EACCES, ELOOP].contains(number) { state.refused = (state.refused.count + 1, number) }
        return
      }
      // A folder that was moved keeps its watch descriptor.
      if let old = state.places[watch], state.watches[old.path] == watch { state.watches[old.path] = nil }
      state.places[watch] = Place(path: path, relative: relative)
      state.watches[path] = watch
    }
  }

  /// Call this when the kernel has ended a watch.
  func forget(_ watch: Int32) {
    state.withLock { state in
      guard let place = state.places.removeValue(forKey: watch) else { return }
      if state.watches[place.path] == watch { state.watches[place.path] = nil }
    }
  }

  /// Removes the watches of a folder and of all folders below it.
  func remove(_ path: BytePath) {
    let inside = path.hasTrailingSlash ? path.bytes : path.bytes + [UInt8(ascii: "/")]
    let watches = state.withLock { state in
      let gone = state.watches.filter { $0.key == path || $0.key.bytes.starts(with: inside) }
      for (path, watch) in gone {
        state.watches[path] = nil
        state.places[watch] = nil
      }
      return gone.values
    }
    for watch in watches { kernel.remove(watch) }
  }

  /// The number of folders that could not be watched since the last call, and the last reason.
  func takeRefused() -> (count: Int, reason: String) {
    let refused = state.withLock { state in
      defer { state.refused = (0, 0) }
      return state.refused
    }
    let reason =
      switch refused.errno {
      case ENOSPC: "fs.inotify.max_user_watches is too low"
      case ENOTSUP: "this system does not tell what changes in them"
      default: String(cString: strerror(refused.errno))
      }
    return (refused.count, reason)
  }
}
