import Blobs
import Platform

/// Keeps the records of uploads in a folder of this computer, for a store that has their bytes elsewhere.
///
/// `ID.info` is the record of a saved upload, and `ID.done` replaces it once the upload is finished. `ID.part` has notes of
/// the store about the upload's bytes, a line for each. Notes are only appended, so a kill leaves all lines but the last.
package final class FolderRecords: RecordKeeping {
  private let state: StateFolder
  private var folder: Folder { state.folder }

  /// Uses `.fullbore` in `folder`, which must exist. Throws if another server uses it.
  package init(in folder: BytePath) throws(ServerError) { state = try StateFolder(in: Folder(folder), folder) }

  package var now: Int64 { state.now }

  /// Releases the folder for another server.
  package func close() { state.unlock() }

  package var claims: (any UploadClaiming)? { nil }
  package var unfinished: Int? { nil }

  /// The ids of all uploads.
  private func ids() throws(ServerError) -> Set<UploadID> {
    Set(try folder.names().compactMap { UploadID(String(decoding: $0.bytes.prefix(32), as: UTF8.self)) })
  }

  package func ids(_ kinds: [RecordKind]) throws(ServerError) -> [Set<UploadID>] {
    var found: [Set<UploadID>] = kinds.map { _ in [] }
    var time: Int64?
    for id in try ids() {
      let kept = try load(id)
      for (index, kind) in kinds.enumerated() where try isOne(kept, of: kind, &time) { found[index].insert(id) }
    }
    return found
  }

  private func isOne(_ kept: KeptRecord?, of kind: RecordKind, _ time: inout Int64?) throws(ServerError) -> Bool {
    switch kind {
    case .unsaved: return kept == nil
    case .unclaimed: return kept?.isFinished == false
    case .expired(let expiry):
      guard let kept else { return false }
      return try hasExpired(kept, expiry, &time)
    }
  }

  /// `time`: the present time by the clock of the records, which is asked only if its answer may matter; nil: not asked yet.
  private func hasExpired(_ kept: KeptRecord, _ expiry: Int64, _ time: inout Int64?) throws(ServerError) -> Bool {
    let isEmpty = kept.isFinished ? false : try notes(of: kept.record.id).isEmpty
    let end = kept.changed.addingClamped(isEmpty ? kept.record.lifetime(at: 0, expiry) : expiry)
    if end > time ?? wallClock() { return false }
    time = time ?? now
    return end <= time ?? .min
  }

  // No other server may use the folder, so each change is allowed.
  package func fence(of _: UploadID) -> Int64? { 0 }
  package func check(_: UploadID, isSaved _: Bool, under _: Int64?) {}
  package func drop(_: UploadID, under _: Int64?) {}

  /// A record that is damaged is as good as none.
  package func load(_ id: UploadID) throws(ServerError) -> KeptRecord? {
    for (name, isFinished) in [(id.info, false), (id.done, true)] {
      guard let record = try folder.record(id, name), let status = try folder.status(name) else { continue }
      let noted = isFinished ? nil : try folder.status(id.part)?.modified
      return KeptRecord(record: record, isFinished: isFinished, changed: max(status.modified, noted ?? .min))
    }
    return nil
  }

  package func save(_ record: UploadRecord, under _: Int64?) throws(ServerError) -> Int64 {
    try record.checkSize()
    try folder.write(record)
    return 0
  }

  package func note(
    _ line: String, _: Int, for id: UploadID, under _: Int64?, fulfilling intent: UploadID?
  ) throws(ServerError) -> Int64 {
    try append(line, to: id.part)
    if let intent { forget([intent]) }
    return 0
  }

  private func append(_ line: String, to name: BytePath) throws(ServerError) {
    let file = try folder.open(name, O_WRONLY | O_CREAT | O_APPEND)
    var text = line + "\n"
    if !text.withUTF8({ file.writeAll(UnsafeRawBufferPointer($0)) }) {
      throw folder.failed("write", name.description)
    }
  }

  package func notes(of id: UploadID) throws(ServerError) -> [String] { try lines(of: id.part) }

  /// The lines of a file without a last one that has no end; empty: there is no such file.
  private func lines(of name: BytePath) throws(ServerError) -> [String] {
    let file: Descriptor
    do throws(ServerError) {
      file = try folder.open(name, O_RDONLY)
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
    if hasFailed { throw folder.failed("read", name.description) }
    guard let end = text.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
    return text[..<end].split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: Intents

  package func keep(_ intent: UploadID, of object: String) throws(ServerError) { try append(object, to: intent.intent) }

  package func takeIntents(except current: Set<UploadID>) throws(ServerError) -> [PartsIntent] {
    let prefix = UploadID.intentPrefix
    let ids = try folder.names().compactMap { name -> UploadID? in
      guard name.bytes.starts(with: prefix.utf8) else { return nil }
      return UploadID(String(decoding: name.bytes.dropFirst(prefix.utf8.count), as: UTF8.self))
    }
    if ids.isEmpty { return [] }
    let now = now
    var found: [PartsIntent] = []
    for id in ids where !current.contains(id) {
      guard let kept = try folder.status(id.intent)?.modified else { continue }
      let age = now.subtractingClamped(kept)
      if age < PartsIntent.grace { continue }
      // A server that was killed while it wrote the line had not begun anything.
      if let object = try lines(of: id.intent).first {
        found.append(PartsIntent(id: id, object: object, age: age))
      } else {
        forget([id])
      }
    }
    return found
  }

  package func objectsOfOthers() -> Set<String> { [] }

  package func hasNote(with text: String) throws(ServerError) -> Bool {
    for id in try ids() { if try notes(of: id).contains(where: { $0.contains(text) }) { return true } }
    return false
  }

  package func forget(_ intents: [UploadID]) { for id in intents { folder.unlink(id.intent) } }

  // MARK: Ends

  package func finish(_ record: UploadRecord, under _: Int64?) throws(ServerError) {
    try folder.write(record)
    let renamed = record.id.info.withCString { info in
      record.id.done.withCString { renameat(folder.number, info, folder.number, $0) }
    }
    if renamed != 0 { throw folder.failed("finish upload", record.id.description) }
    folder.unlink(record.id.part)
  }

  package func deleteRecord(_ id: UploadID, under _: Int64?) -> Bool {
    folder.unlink(id.info)
    folder.unlink(id.done)
    return true
  }

  package func delete(_ id: UploadID) {
    _ = deleteRecord(id, under: nil)
    folder.unlink(id.part)
  }

  package func tidy() {}
  package func takeNotices() -> [String] { [] }

  package var problem: String? {
    if folder.isDeleted { return "the folder for the state was deleted" }
    if let reason = folder.problemOfWriting() {
      return "the folder for the state cannot be written: \(String(cString: strerror(reason)))"
    }
    // An upload begins with a record.
    return folder.free.map { $0 < Folder.largestRecord } == true ? "the disk of the folder for the state is full" : nil
  }
}

extension UploadID {
  /// The file with the notes of a store about the bytes of an upload.
  fileprivate var part: BytePath { BytePath("\(self).part") }

  /// The beginning of the name of a file with an intent, with which no id begins.
  fileprivate static let intentPrefix = "intent-"
  fileprivate var intent: BytePath { BytePath("\(Self.intentPrefix)\(self)") }
}
