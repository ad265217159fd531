import Blobs
import Platform

extension Folder {
  /// Maximum size, in bytes, of the first record of an upload.
  static let largestRecord = 64 << 10
  /// Records may grow later: by the length, digests and the ETag of the file.
  private static let largestGrownRecord = largestRecord + (4 << 10)

  /// Reads a record; nil if it does not exist or is incomplete.
  func record(_ id: UploadID, _ name: BytePath) throws(ServerError) -> UploadRecord? {
    let file: Descriptor
    do throws(ServerError) {
      file = try open(name, O_RDONLY)
    } catch {
      if error.systemError == ENOENT { return nil }
      throw error
    }
    // Most records are far smaller than the maximum, and a start may read many.
    for size in [1 << 10, Self.largestGrownRecord + 1] {
      var count = 0
      let text = withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer -> [UInt8]? in
        count = pread(file.number, buffer.baseAddress!, size, 0)
        return 0..<size ~= count ? Array(buffer[..<count]) : nil
      }
      if let text { return UploadRecord(id, text) }
      if count >= 0 { continue }
      // A record that the disk cannot read now may still be valid, unless the name is not that of a file.
      let error = failed("read the record of upload", id.description)
      if try status(name)?.isFile == false { return nil }
      throw error
    }
    return nil
  }

  /// Writes a record atomically.
  func write(_ record: UploadRecord) throws(ServerError) {
    let draft = BytePath("\(record.id).draft")
    let file = try open(draft, O_WRONLY | O_CREAT | O_TRUNC)
    var text = record.text
    let isWritten =
      text.withUTF8 { file.writeAll(UnsafeRawBufferPointer($0)) }
      && draft.withCString { old in record.id.info.withCString { renameat(number, old, number, $0) } } == 0
    if isWritten { return }
    let error = failed("write the record of upload", record.id.description)
    unlink(draft)
    throw error
  }
}
