import Blobs
import Platform
import Synchronization

/// What the names in a folder say, from one listing of the folder that was asked for last.
final class LatestFolder<Content: Sendable>: Sendable {
  private struct Look: Sendable {
    var folder: BytePath
    var stamp: FileStamp?
    var content: Content
  }
  private let latest = Mutex<Look?>(nil)
  private let read: @Sendable (OpenFolder?) -> Content

  /// `read`: gets nil if the folder cannot be opened.
  init(_ read: @escaping @Sendable (OpenFolder?) -> Content) { self.read = read }

  /// This call blocks.
  func content(of folder: BytePath) -> Content {
    var status = stat()
    let stamp = folder.status(&status) == 0 ? FileStamp(status) : nil
    let known = latest.withLock { $0 }
    if let known, known.folder == folder, known.stamp != nil, known.stamp == stamp { return known.content }
    // Called without the lock: a thread that hangs in the folder must not block others.
    var look = Look(folder: folder, stamp: stamp, content: read(OpenFolder(folder, "", follow: true)))
    // The folder may change again within the resolution of its modification time, so the listing is not cached.
    if let stamp, stamp.unsettled(at: FileStamp.now) > 0 { look.stamp = nil }
    latest.withLock { [look] in $0 = look }
    return look.content
  }
}
