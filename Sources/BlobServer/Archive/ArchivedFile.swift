import Blobs
import Platform

/// A file that is read for an archive. It gives no bytes of another version than the listed one: bytes count only if the
/// file was still unchanged after they were read.
struct ArchivedFile {
  private let entry: FolderTree.Entry
  private let file: Descriptor
  private let path: ServedPath
  private var offset: Int64
  private var crc: CRC32?

  /// Opens an entry of the archive, `offset` bytes from its start. Throws 409 if it is not there any more, or changed.
  init(_ part: Archive.Part, _ index: Int, at offset: Int64 = 0) throws(ServerError) {
    entry = part.archive.tree.entries[index]
    path = try part.folder.appending(part.archive.tree.path(of: index))
    let open = try part.store.open(path)
    guard let descriptor = open.file else { preconditionFailure("archives are made of local files") }
    file = descriptor
    self.offset = offset
    crc = part.archive.format.hasSums && offset == 0 ? CRC32() : nil
    if !entry.isStill(open.item) { throw Self.changed(path) }
  }

  /// The number of bytes that were not read yet.
  var rest: Int64 { entry.length - offset }
  /// The checksum of the file; nil: it was not read from its first to its last byte.
  var sum: UInt32? { rest == 0 ? crc?.value : nil }

  /// Reads up to `room.count` bytes, at least one. Throws if the file was changed.
  mutating func read(into room: UnsafeMutableRawBufferPointer) throws(ServerError) -> Int {
    var count = 0
    repeat {
      count = pread(file.number, room.baseAddress!, Int(min(Int64(room.count), rest)), off_t(offset))
    } while count < 0 && errno == EINTR
    if count < 0 { throw failed("read", path.description) }
    var status = stat()
    if fstat(file.number, &status) != 0 { throw failed("look at", path.description) }
    if count == 0 || !entry.isStill(StoredItem(status)) { throw Self.changed(path) }
    crc?.update(UnsafeRawBufferPointer(rebasing: room[..<count]))
    offset += Int64(count)
    return count
  }

  private static func changed(_ path: ServedPath) -> ServerError {
    ServerError(409, "\(path) was changed while it was read")
  }
}
