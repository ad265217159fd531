import BlobCrypto
import Blobs

/// The rows of a BLOB in one snapshot: the location of its chunks, and its version.
struct BlobVersion {
  struct Chunk {
    var row: Int64
    /// Offset of its first byte within the whole BLOB.
    var start: Int64
    var count: Int32
  }
  var chunks: [Chunk] = []
  var length: Int64 = 0
  var validator = Validator(version: "")

  /// A limit, because the locations of more chunks would need too much memory.
  private static let mostChunks = 4 << 20
  /// Maximum size, in bytes, of a version value in one row. A longer value is content, not a version.
  private static let longestVersion = 4096

  /// Reads the locations and the version. Without a version column it reads every byte.
  init(_ place: BlobLocation, in connection: ReadConnection, _ cancel: Cancellation) throws {
    try connection.checkTable(place.table, column: place.column)
    try connection.checkCondition(place.condition, of: place.table)
    let column = quoted(place.column)
    let rows = try connection.prepare(
      """
      SELECT rowid, typeof(\(column)), length(\(column)), \(Self.version(place)) FROM \(quoted(place.table))
      WHERE (\(place.wholeCondition)) ORDER BY \(place.order), rowid LIMIT \(Self.mostChunks + 1)
      """)
    if let name = place.name?.value.bytes {
      try rows.bind(1, text: name)
      try rows.bind(2, name)
    }
    // A fixed key suffices: the checksum distinguishes versions that occur, and need not resist forgery, because anyone
    // who can write to the database can change what is sent anyway.
    let digest = KeyedChecksum(key: Array(1...UInt8(KeyedChecksum.keyCount)))
    while try rows.step() {
      let (row, kind) = (rows.int(0), rows.text(1) ?? "")
      guard kind == "blob" else {
        throw BlobError(
          .unsupported, "\(connection.file): \(place): row \(row) has a value of type \(kind), and no BLOB")
      }
      guard let version = rows.text(3) else {
        throw BlobError(
          .unsupported,
          "\(connection.file): \(place): the version in row \(row) has more than \(Self.longestVersion) bytes")
      }
      if chunks.count == Self.mostChunks {
        throw BlobError(.unsupported, "\(connection.file): \(place): it has more than \(Self.mostChunks) chunks")
      }
      let chunk = Chunk(row: row, start: length, count: Int32(clamping: rows.int(2)))
      chunks.append(chunk)
      length += Int64(chunk.count)
      // The row number is part of the version: VACUUM may give the number to another row.
      if place.version != nil { digest.update("\(row) \(chunk.count) \(version);") }
    }
    if chunks.isEmpty || place.isSingle && chunks.count > 1 {
      let named = place.name.map { " named '\($0.value)'" } ?? ""
      throw BlobError(.notFound, "\(connection.file): \(place): there is no such row\(named)")
    }
    if place.version == nil { try digest.update(chunks, place, connection, cancel) }
    validator = Validator(version: "sqlite-\(length)-\(Digest.hex(digest.value().prefix(16)))")
  }

  /// An SQL expression for the version of a row; NULL if the value is too long.
  private static func version(_ place: BlobLocation) -> String {
    guard let version = place.version.map(quoted) else { return "''" }
    return "CASE WHEN coalesce(length(CAST(\(version) AS BLOB)), 0) <= \(longestVersion) THEN quote(\(version)) END"
  }
}

extension KeyedChecksum {
  fileprivate func update(_ text: String) { Array(text.utf8).withUnsafeBytes { update($0) } }

  /// Adds every byte of the chunks.
  fileprivate func update(
    _ chunks: [BlobVersion.Chunk], _ place: BlobLocation, _ connection: ReadConnection, _ cancel: Cancellation
  ) throws {
    let walk = ChunkReader(chunks, place, connection)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      try cancel.check("look at \(connection.file)")
      let count = try walk.read(into: buffer)
      if count == 0 { return }
      update(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)))
    }
  }
}
