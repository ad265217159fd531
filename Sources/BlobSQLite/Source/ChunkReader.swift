import CSQLite

/// Reads the chunks of a BLOB in order, within one snapshot.
final class ChunkReader {
  private let chunks: [BlobVersion.Chunk]
  private let place: BlobLocation
  private let connection: ReadConnection
  private(set) var offset: Int64 = 0
  /// Index of the current chunk.
  private var index = 0
  private var blob: OpaquePointer?

  init(_ chunks: [BlobVersion.Chunk], _ place: BlobLocation, _ connection: ReadConnection) {
    self.chunks = chunks
    self.place = place
    self.connection = connection
  }

  deinit { sqlite3_blob_close(blob) }

  /// Sets the offset, within the whole BLOB, of the next byte to read; at most the BLOB's length.
  func seek(to offset: Int64) {
    self.offset = offset
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle].start + Int64(chunks[middle].count) <= offset { low = middle + 1 } else { high = middle }
    }
    index = low
  }

  /// Reads at least one byte; returns 0 at the end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(SQLiteError) -> Int {
    while index < chunks.count {
      let chunk = chunks[index]
      let inside = Int32(offset - chunk.start)
      let count = min(Int32(clamping: buffer.count), chunk.count - inside)
      if count > 0 {
        try open(chunk)
        if sqlite3_blob_read(blob, buffer.baseAddress, count, inside) != SQLITE_OK { throw connection.error("read") }
        offset += Int64(count)
        return Int(count)
      }
      index += 1
      opened = nil
    }
    return 0
  }

  /// The row at which `blob` is open.
  private var opened: Int64?

  private func open(_ chunk: BlobVersion.Chunk) throws(SQLiteError) {
    if opened == chunk.row { return }
    if blob == nil {
      blob = try connection.openBlob(place, row: chunk.row)
    } else if sqlite3_blob_reopen(blob, chunk.row) != SQLITE_OK {
      throw connection.error("open")
    }
    opened = chunk.row
  }
}
