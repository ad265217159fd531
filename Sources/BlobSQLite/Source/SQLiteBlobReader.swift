import Blobs

/// One pass over a BLOB in one snapshot.
final class SQLiteBlobReader: BlobReader {
  let info: BlobInfo
  private let source: SQLiteBlobSource
  private let walk: ChunkReader
  /// A connection outside the snapshot, which sees changes by other connections.
  private let watch: ReadConnection
  private var seen: Int64
  private let cancel: Cancellation
  /// In bytes. The pages of smaller rows are walked faster than a request is sent.
  private static let longestQuickRow: Int32 = 8 << 20

  init(_ source: SQLiteBlobSource, at offset: Int64, _ cancel: Cancellation) throws {
    self.source = source
    self.cancel = cancel
    watch = try ReadConnection(source.file, cancel)
    // Read before the snapshot begins, so that no change between the two is missed.
    seen = try watch.dataVersion()
    let connection = try ReadConnection(source.file, cancel)
    try connection.beginSnapshot()
    let version = try BlobVersion(source.place, in: connection, cancel)
    guard 0...version.length ~= offset else {
      throw BlobError(.outOfRange, "open \(source.name) at byte \(offset): it has \(version.length)")
    }
    // SQLite finds a byte of a row by the list of all pages before it. Without a version column, the whole BLOB is read
    // whenever a reader is opened.
    let isSlowToSeek = source.place.version == nil || version.chunks.contains { $0.count > Self.longestQuickRow }
    info = BlobInfo(
      length: version.length, validator: version.validator, preferredRead: 64 << 10, readAhead: 256 << 10,
      isSlowToSeek: isSlowToSeek)
    walk = ChunkReader(version.chunks, source.place, connection)
    walk.seek(to: offset)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    do {
      return try walk.read(into: buffer)
    } catch {
      throw BlobError(error, "read \(source.name) at byte \(walk.offset)")
    }
  }

  func fileRegion() -> FileRegion? { nil }

  /// Checks the version only if another connection has changed the file: it reads the version column, or every byte if
  /// there is no such column.
  func finish() throws(BlobError) {
    do {
      let now = try watch.dataVersion()
      if now == seen { return }
      let fresh = try ReadConnection(source.file, cancel)
      try fresh.beginSnapshot()
      let version = try BlobVersion(source.place, in: fresh, cancel)
      if version.validator != info.validator {
        throw BlobError(.changed, "\(source.name) was changed while it was read")
      }
      seen = now
    } catch let error as SQLiteError {
      throw BlobError(error, "look again at \(source.name)")
    } catch let error as BlobError where error.code == .notFound {
      throw BlobError(.changed, "\(source.name) was deleted while it was read")
    } catch {
      throw error as! BlobError
    }
  }
}
