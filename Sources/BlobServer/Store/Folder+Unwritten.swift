import Blobs
import Platform

extension Folder {
  /// Cuts the bytes of an unfinished upload where the first hole is. The server makes none: after a power cut a file system
  /// may have kept the size of a file, which is the offset of the upload, but not all that was written to it, and the part
  /// that is missing is a hole. The client then sends the bytes from there on again.
  ///
  /// A file system that keeps blocks of zeros as holes only has more sent again than needed. One that tells of no holes is
  /// trusted.
  func dropUnwritten(of id: UploadID) throws(ServerError) {
    guard let status = try status(id.data), status.st_size > 0 else { return }
    let file = try open(id.data, O_RDWR)
    let hole = lseek(file.number, 0, Self.seekHole)
    if hole < 0 || hole >= status.st_size { return }
    if ftruncate(file.number, hole) != 0 { throw failed("drop bytes of upload", id.description) }
  }

  /// `SEEK_HOLE`. Glibc's module has no constant for it.
  #if os(Linux)
    private static let seekHole: Int32 = 4
  #else
    private static let seekHole = SEEK_HOLE
  #endif
}
