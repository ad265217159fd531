import Blobs
import Platform

extension Folder {
  /// Truncates the bytes of an unfinished upload at the first hole. The server itself creates no holes. After a power
  /// failure a file system may have kept a file's size, which is the upload's offset, but not all data that was written
  /// to it; the missing data is a hole. The client then sends the bytes from there on again.
  ///
  /// On a file system that stores zero blocks as holes, this may cause more to be sent again than necessary. A file
  /// system that does not report holes is trusted.
  func dropUnwritten(of id: UploadID) throws(ServerError) {
    guard let status = try status(id.data), status.st_size > 0 else { return }
    let file = try open(id.data, O_RDWR)
    let hole = lseek(file.number, 0, Self.seekHole)
    if hole < 0 || hole >= status.st_size { return }
    if ftruncate(file.number, hole) != 0 { throw failed("drop bytes of upload", id.description) }
  }

  /// `SEEK_HOLE`, which the Glibc module does not export.
  #if os(Linux)
    private static let seekHole: Int32 = 4
  #else
    private static let seekHole = SEEK_HOLE
  #endif
}
