import Blobs
import Platform

/// Keeps the records of uploads in a folder of this computer, for a store that has their bytes elsewhere.
///
/// `ID.info` is the record of a saved upload, and `ID.done` replaces it once the upload is finished. `ID.part` has notes of
/// the store about the upload's bytes, a line for each. Notes are only appended, so a kill leaves all lines but the last.
package final class FolderRecords: Sendable {
  /// The record of an upload.
  package struct Kept: Sendable {
    package var record: UploadRecord
    package var isFinished: Bool
    /// The time of the last change by the clock of `now`, in nanoseconds since 1970.
    package var changed: Int64
  }

  private let state: StateFolder
  private var folder: Folder { state.folder }

  /// Uses `.fullbore` in `folder`, which must exist. Throws if another server uses it.
  package init(in folder: BytePath) throws(ServerError) { state = try StateFolder(in: Folder(folder), folder) }

  /// The present time by the clock that gives the records their times, in nanoseconds since 1970. Changes a time on the disk.
  package var now: Int64 { state.now }

  /// Releases the folder for another server.
  package func close() { state.unlock() }

  /// The ids of all uploads of which a record or notes are there.
  package func ids() throws(ServerError) -> Set<UploadID> {
    Set(try folder.names().compactMap { name in UploadID(String(decoding: name.bytes.prefix(32), as: UTF8.self)) })
  }

  /// nil: there is no record of the upload, or only a damaged one.
  package func load(_ id: UploadID) throws(ServerError) -> Kept? {
    for (name, isFinished) in [(id.info, false), (id.done, true)] {
      guard let record = try folder.record(id, name), let status = try folder.status(name) else { continue }
      let noted = isFinished ? nil : try folder.status(id.part)?.modified
      return Kept(record: record, isFinished: isFinished, changed: max(status.modified, noted ?? .min))
    }
    return nil
  }

  /// Writes the record of an upload that is not finished.
  package func save(_ record: UploadRecord) throws(ServerError) {
    if record.text.utf8.count > Folder.largestRecord {
      throw ServerError(431, "what the request says of the upload takes more than \(Folder.largestRecord) bytes")
    }
    try folder.write(record)
  }

  /// Appends a line, which has no line feed, to the notes of an upload.
  package func note(_ line: String, for id: UploadID) throws(ServerError) {
    let file = try folder.open(id.part, O_WRONLY | O_CREAT | O_APPEND)
    var text = line + "\n"
    if !text.withUTF8({ file.writeAll(UnsafeRawBufferPointer($0)) }) {
      throw folder.failed("write the notes of upload", id.description)
    }
  }

  /// The notes of an upload, without a last line that has no end.
  package func notes(of id: UploadID) throws(ServerError) -> [String] {
    let file: Descriptor
    do throws(ServerError) {
      file = try folder.open(id.part, O_RDONLY)
    } catch {
      if error.systemError == ENOENT { return [] }
      throw error
    }
    var text: [UInt8] = []
    let hasFailed = withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer -> Bool in
      while true {
        let count = read(file.number, buffer.baseAddress!, buffer.count)
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return count < 0 }
        text += buffer[..<count]
      }
    }
    if hasFailed { throw folder.failed("read the notes of upload", id.description) }
    guard let end = text.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
    return text[..<end].split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Keeps the record of a finished upload, and deletes its notes.
  package func finish(_ record: UploadRecord) throws(ServerError) {
    try folder.write(record)
    let renamed = record.id.info.withCString { info in
      record.id.done.withCString { renameat(folder.number, info, folder.number, $0) }
    }
    if renamed != 0 { throw folder.failed("finish upload", record.id.description) }
    folder.unlink(record.id.part)
  }

  /// Deletes the record of an upload. Its notes stay.
  package func deleteRecord(_ id: UploadID) {
    folder.unlink(id.info)
    folder.unlink(id.done)
  }

  /// Deletes the record and the notes of an upload.
  package func delete(_ id: UploadID) {
    deleteRecord(id)
    folder.unlink(id.part)
  }

  /// Why nothing can be kept; nil: it can.
  package var problem: String? {
    if folder.isDeleted { return "the folder for the state was deleted" }
    return folder.problemOfWriting().map {
      "the folder for the state cannot be written: \(String(cString: strerror($0)))"
    }
  }
}

extension UploadID {
  /// The file with the notes of a store about the bytes of an upload.
  fileprivate var part: BytePath { BytePath("\(self).part") }
}
