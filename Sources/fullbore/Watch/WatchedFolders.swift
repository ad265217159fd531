import BlobUpload
import Blobs
import Platform
import Synchronization

/// Which folder each of the kernel's watches is about.
final class WatchedFolders: Sendable {
  struct Place: Sendable, Hashable {
    /// Absolute.
    let path: BytePath
    /// Where it arrives, below the destination.
    let relative: BytePath
  }

  private struct State {
    var places: [Int32: Place] = [:]
    var watches: [BytePath: Int32] = [:]
    /// Folders that the kernel would not watch, and why, since the last look.
    var refused: (count: Int, errno: Int32) = (0, 0)
  }
  private let state = Mutex(State())
  private let kernel: Inotify
  private let roots: Set<BytePath>

  init(_ kernel: Inotify, roots: [BytePath]) {
    self.kernel = kernel
    self.roots = Set(roots)
  }

  var count: Int { state.withLock { $0.places.count } }

  func place(of watch: Int32) -> Place? { state.withLock { $0.places[watch] } }

  func contains(_ path: BytePath) -> Bool { state.withLock { $0.watches[path] != nil } }

  /// To be called before the folder is read: what comes after that is told, what came before is read.
  func add(_ path: BytePath, _ relative: BytePath) {
    let watch = kernel.add(path, follow: roots.contains(path))
    let number = errno
    state.withLock { state in
      guard watch >= 0 else {
        // A folder that is gone or locked: whoever reads it says so.
        if ![ENOENT, ENOTDIR, EACCES, ELOOP].contains(number) { state.refused = (state.refused.count + 1, number) }
        return
      }
      // A folder that was moved keeps its watch.
      if let old = state.places[watch], state.watches[old.path] == watch { state.watches[old.path] = nil }
      state.places[watch] = Place(path: path, relative: relative)
      state.watches[path] = watch
    }
  }

  /// The kernel has ended a watch.
  func forget(_ watch: Int32) {
    state.withLock { state in
      guard let place = state.places.removeValue(forKey: watch) else { return }
      if state.watches[place.path] == watch { state.watches[place.path] = nil }
    }
  }

  /// Ends the watches of a folder and of all below it.
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

  /// How many folders could not be watched since the last call, and the system's last reason.
  func takeRefused() -> (count: Int, errno: Int32) {
    state.withLock { state in
      defer { state.refused = (0, 0) }
      return state.refused
    }
  }
}
