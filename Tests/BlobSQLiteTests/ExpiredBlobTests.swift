import BlobTesting
import Blobs
import Testing

@testable import BlobSQLite

/// SQLITE_ABORT: the row of an open BLOB was written to on the same connection.
struct ExpiredBlobTests {
  private let scratch = Scratch()
  private let place = BlobLocation(
    table: "photo", column: "data", version: nil, condition: "rowid = 1", order: "rowid", isSingle: true)

  @Test func aBlobThatExpiredIsInvalidatedAndGoesOnWhenOpenedAgain() throws {
    let file = BytePath(scratch.file)
    let pattern = PatternSource(length: 200_000, seed: 1)
    do {
      let database = try Database(file)
      try database.execute("CREATE TABLE photo(id INTEGER PRIMARY KEY, name TEXT, data BLOB)")
      let insert = try database.statement("INSERT INTO photo(data) VALUES(?1)")
      try insert.bind(1, pattern.bytes(count: 200_000))
      try insert.run()
    }
    let connection = try ReadConnection(file, Cancellation(), writes: true)
    let version = try BlobVersion(place, in: connection, Cancellation())
    let walk = ChunkReader(version.chunks, place, connection)
    let first = try read(walk, 70_000)
    // The BLOB itself is not changed; any column of its row has this effect.
    try connection.prepare("UPDATE photo SET name = 'another'").run()
    let error = #expect(throws: SQLiteError.self) { try read(walk, 1) }
    #expect(error.map { $0.code & 0xFF } == 4)
    #expect(error.map { BlobError($0, "read").code } == .invalidated)
    #expect(walk.offset == 70_000)

    let again = ChunkReader(version.chunks, place, connection)
    again.seek(to: walk.offset)
    #expect(try first + read(again, 130_000) == pattern.bytes(count: 200_000))
    // The product reads with a read-only connection.
    #expect(throws: SQLiteError.self) {
      try ReadConnection(file, Cancellation()).prepare("UPDATE photo SET name = 'none'").run()
    }
  }

  private func read(_ walk: ChunkReader, _ count: Int) throws(SQLiteError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let result = bytes.withUnsafeMutableBytes { buffer in
        Result { () throws(SQLiteError) in
          try walk.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
        }
      }
      let got = try result.get()
      if got == 0 { break }
      done += got
    }
    return Array(bytes.prefix(done))
  }
}
