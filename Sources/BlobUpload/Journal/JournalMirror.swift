import BlobSQLite
import Blobs

/// Stores the uploads of a journal elsewhere as well, for other processes. The journal is then the memory of one process only.
package protocol JournalMirror: AnyObject, Sendable {
  /// Whether changes of this entry are stored.
  func isMirrored(_ id: Int64) -> Bool
  /// Stores the present state of changed uploads. Called on the journal's thread, before the same changes are committed
  /// there; blocks. If this throws, the journal commits nothing, and tries again with the next notes. The same changes may
  /// come twice.
  func store(_ changes: [MirroredUpload]) throws(JournalError)
}

/// A change of an upload.
package struct MirroredUpload: Sendable {
  /// The entry in the journal.
  package var id: Int64
  /// The upload as it is now; nil: only parts were added.
  package var upload: ResumableUpload?
  package var state: JournalEntry.State
  /// The message of the failure, if it has failed.
  package var error: String?
  /// Parts that were added, or all parts if `hasAllParts`.
  package var parts: [PartReceipt]
  package var hasAllParts: Bool

  package init(
    id: Int64, upload: ResumableUpload? = nil, state: JournalEntry.State = .open, error: String? = nil,
    parts: [PartReceipt] = [], hasAllParts: Bool = false
  ) {
    (self.id, self.upload, self.state, self.error) = (id, upload, state, error)
    (self.parts, self.hasAllParts) = (parts, hasAllParts)
  }
}

/// The facts with which a process goes on with an upload that another one has begun, perhaps on another machine. They are text
/// in the shared queue, so new members are optional.
package struct ResumableUpload: Sendable, Codable {
  private var source: String
  private var path: String
  private var key: String
  package var length: Int64?
  package private(set) var validator: Validator?
  package private(set) var contentType: String
  package private(set) var partSize: Int64?
  package private(set) var session: UploadSession?
  private var sent: [Sent]?
  package private(set) var acknowledged: Int64
  package var sentLength: Int64?
  /// false: the process that has stored this may have sent more bytes than `sent` says.
  package private(set) var isSettled: Bool

  private struct Sent: Codable {
    var start: Int64
    var end: Int64
    var key: String
    var value: String
  }

  /// An upload that is not begun.
  package init(_ intent: JournalIntent) {
    source = hexadecimal(intent.source.bytes)
    path = hexadecimal(intent.path.bytes)
    (key, length, validator) = (intent.key, intent.length, intent.validator)
    (contentType, partSize, acknowledged, isSettled) = (intent.contentType, intent.partSize, 0, true)
  }

  init(_ entry: JournalEntry) {
    self.init(entry.intent)
    (session, acknowledged) = (entry.session, entry.acknowledged)
    (sentLength, isSettled) = (entry.sentLength, entry.owner == nil)
    if entry.sent.isEmpty { return }
    sent = entry.sent.map {
      Sent(start: $0.start, end: $0.end, key: hexadecimal($0.key), value: hexadecimal($0.value))
    }
  }

  /// nil: the text is none that this program has written.
  package var intent: JournalIntent? {
    guard let source = bytes(ofHexadecimal: source), let path = bytes(ofHexadecimal: path) else { return nil }
    let (target, recipient) = JournalIntent.parts(ofKey: key)
    return JournalIntent(
      source: BytePath(source), target: target, recipient: recipient, path: BytePath(path), length: length,
      validator: validator, contentType: contentType, partSize: partSize)
  }

  /// Ranges that cannot be understood are left out: their bytes count as not compared.
  var ranges: [SentRange] {
    (sent ?? []).compactMap { range in
      guard let key = bytes(ofHexadecimal: range.key), let value = bytes(ofHexadecimal: range.value) else { return nil }
      return SentRange(start: range.start, end: range.end, key: key, value: value)
    }
  }
}

private func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    for (index, byte) in bytes.enumerated() {
      text[2 * index] = digits[Int(byte >> 4)]
      text[2 * index + 1] = digits[Int(byte & 15)]
    }
    return 2 * bytes.count
  }
}

private func bytes(ofHexadecimal text: String) -> [UInt8]? {
  let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
  guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

extension JournalStore {
  /// Tells the mirror what these notes have changed. Must be called inside the transaction that applies them.
  func tell(_ mirror: any JournalMirror, of notes: [JournalNote]) throws(SQLiteError) -> JournalError? {
    var (order, changes): ([Int64], [Int64: MirroredUpload]) = ([], [:])
    for note in notes where mirror.isMirrored(note.id) {
      if changes[note.id] == nil { order.append(note.id) }
      var change = changes[note.id] ?? MirroredUpload(id: note.id)
      // Reading an upload takes as long as it has parts, and there is a note of each part.
      if case .receipt(let receipt) = note.event {
        change.parts.append(receipt)
      } else {
        change.hasAllParts = true
      }
      changes[note.id] = change
    }
    uploads.sent.forgetLookups()
    for id in order where changes[id]?.hasAllParts == true {
      guard let entry = try uploads.entry(id: id) else {
        changes[id] = nil
        continue
      }
      changes[id] = MirroredUpload(
        id: id, upload: ResumableUpload(entry), state: entry.state, error: entry.error, parts: entry.receipts,
        hasAllParts: true)
    }
    let told = order.compactMap { changes[$0] }
    if told.isEmpty { return nil }
    do throws(JournalError) { try mirror.store(told) } catch { return error }
    return nil
  }
}

extension UploadTable {
  /// Must be called inside a transaction. Adds an upload that another journal has begun, and returns its id.
  func adopt(
    _ upload: ResumableUpload, _ intent: JournalIntent, _ parts: [PartReceipt], _ destination: Int64
  ) throws(SQLiteError) -> Int64 {
    if let old = try entry(intent.key, intent.source), let row = try UploadFacts(of: old.id, in: database) {
      try remove(old.id, row)
    }
    let id = try nextID()
    let insert = try database.statement(
      """
      INSERT INTO upload(id, state, updated, created, destination, length, part_size, path, version, instance,
      content_type, target, source, acknowledged, session, sent_length)
      VALUES(?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
      """)
    try insert.bind(1, id)
    try insert.bind(2, Int64((upload.session == nil ? JournalEntry.State.intent : .open).rawValue))
    try insert.bind(3, currentSeconds())
    try insert.bind(4, destination)
    try insert.bind(5, intent.length)
    try insert.bind(6, intent.partSize)
    try insert.bind(7, intent.path.bytes)
    try insert.bind(8, intent.validator?.version)
    try insert.bind(9, intent.validator?.instance)
    try insert.bind(10, intent.contentType)
    try insert.bind(11, intent.key)
    try insert.bind(12, intent.source.bytes)
    try insert.bind(13, upload.session == nil ? 0 : upload.acknowledged)
    try insert.bind(14, upload.session.map { JSONColumn.encode($0) })
    try insert.bind(15, upload.sentLength)
    try insert.run()
    guard upload.session != nil else { return id }
    for part in parts { try keep(part, id) }
    try sent.adopt(upload.ranges, of: id, isWhole: upload.isSettled)
    return id
  }
}
