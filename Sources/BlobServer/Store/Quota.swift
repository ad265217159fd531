#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif
import Blobs
import Synchronization

/// Bytes the folder holds and has promised to hold, against the most it may.
final class Quota: Sendable {
  private let limit: Int64?
  private let used = Mutex<Int64>(0)

  init(_ limit: Int64?) { self.limit = limit }

  /// Throws 413 when `bytes` more would be too many.
  func reserve(_ bytes: Int64) throws(ServerError) {
    guard let limit, bytes > 0 else { return }
    let free: Int64? = used.withLock { used in
      if bytes > limit - used { return max(0, limit - used) }
      used += bytes
      return nil
    }
    if let free { throw ServerError(413, "no room for \(bytes) bytes: \(free) of \(limit) are free") }
  }

  func release(_ bytes: Int64) {
    if limit != nil { used.withLock { $0 = max(0, $0 - bytes) } }
  }

  /// Counts what is there: published files, and of saved uploads the promised length.
  /// `joined`: what a final upload has taken over from its parts; nil for any other.
  func measure(
    _ root: Folder, _ store: Folder, joined: (UploadID) throws(ServerError) -> Int64?
  ) throws(ServerError) {
    var sum = try Self.size(root, isRoot: true)
    for name in try store.names() {
      guard let file = UploadFile(name), file.kind == .data else { continue }
      if let joined = try joined(file.id) {
        sum += joined
        continue
      }
      let held = try store.status(name).map { Int64($0.st_size) } ?? 0
      sum += try store.record(file.id, file.id.info)?.length ?? held
    }
    used.withLock { $0 = sum }
  }

  private static func size(_ folder: Folder, isRoot: Bool) throws(ServerError) -> Int64 {
    var sum: Int64 = 0
    for name in try folder.names() where !(isRoot && name == ServedPath.storeName) {
      guard let status = try folder.status(name) else { continue }
      if status.isFile { sum += Int64(status.st_size) }
      if StoredItem(status).isFolder {
        sum += try size(Folder(try folder.open(name, O_RDONLY | O_DIRECTORY)), isRoot: false)
      }
    }
    return sum
  }
}
