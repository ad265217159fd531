import BlobClient
import BlobHTTP
import BlobSQLite
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

/// BLOBs are rewritten during their upload: the uploaded file must be one complete version.
@Suite struct DatabaseChurnTests {
  private static let names = 6

  /// Every 64 bytes contain the version and their position.
  private static func content(_ version: Int64) -> [UInt8] {
    var random = SplitMix(UInt64(bitPattern: version))
    let count = 1000 + Int(random.next() % 700_000)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 64)
    while bytes.count < count {
      let line = Array("\(version) \(bytes.count) ".utf8)
      bytes += line + [UInt8](repeating: UInt8(ascii: "."), count: 64 - line.count)
    }
    return Array(bytes.prefix(count))
  }

  /// nil: the bytes are not one complete version.
  private static func version(of bytes: [UInt8]) -> Int64? {
    let number = Int64(String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    return number.flatMap { content($0) == bytes ? $0 : nil }
  }

  @Test func aMixtureIsSeen() {
    let (a, b) = (Self.content(1), Self.content(2))
    let half = min(a.count, b.count) / 2
    #expect(Self.version(of: a) == 1 && Self.version(of: b) == 2)
    #expect(Self.version(of: Array(a[..<half])) == nil && Self.version(of: Array(a[..<half] + b[half...])) == nil)
  }

  @Test(arguments: [true, false], ["put", "tus"])
  func whateverArrivesWasAVersionOfItsRow(_ hasVersionColumn: Bool, _ uploadProtocol: String) async throws {
    let scratch = try ScratchFolder()
    let file = scratch.path.appending("media.sqlite")
    let table = SQLiteBlobTable(file, table: "media", column: "bytes", version: hasVersionColumn ? "version" : nil)
    let churn = try DatabaseChurn(file, rows: Self.names, content: Self.content)
    let server = try ServedFolder()
    let transport = SocketTransport()
    let destination = try await UploadDestination.discover(server.endpoint, named: uploadProtocol, over: transport)
    let uploader = Uploader(destination, transport: transport)

    var arrived: [Int64] = []
    var moved = 0
    // On a busy machine one of the two threads may hardly run.
    for round in 0..<100 where round < 8 || churn.count <= 50 {
      let changes = churn.start()
      for row in 1...Int64(Self.names) {
        let name = BytePath("\(row)-\(round)")
        let source = table.source(row: row)
        do {
          _ = try await uploader.upload(source, as: name)
          let bytes = try #require(server.contents(of: name))
          arrived.append(try #require(Self.version(of: bytes), "\(name) is a mixture: \(bytes.count) bytes"))
        } catch let error as UploadError {
          // The row was changed, deleted or locked: the error says so, and no file was stored.
          #expect(error.side == .source, "\(error)")
          #expect(server.contents(of: name) == nil)
          moved += 1
        }
      }
      try churn.stop(changes)
    }
    print(
      "\(churn.count) changes, \(arrived.count) arrived of \(Set(arrived).count) versions, \(moved) moved meanwhile")
    #expect(arrived.count > 10 && Set(arrived).count > 5 && churn.count > 50)
  }
}

/// Rewrites, deletes and inserts rows on its own thread and connection, and vacuums.
private final class DatabaseChurn: Sendable {
  private struct State {
    var version: Int64 = 0
    var count = 0
    var failure: String?
  }
  private let state = Mutex(State())
  private let file: BytePath
  private let rows: Int
  private let content: @Sendable (Int64) -> [UInt8]

  init(_ file: BytePath, rows: Int, content: @escaping @Sendable (Int64) -> [UInt8]) throws {
    (self.file, self.rows, self.content) = (file, rows, content)
    let database = try Database(file)
    try database.execute("CREATE TABLE media(id INTEGER PRIMARY KEY, version INTEGER, bytes BLOB)")
    for row in 1...Int64(rows) { try put(row, database) }
  }

  var count: Int { state.withLock { $0.count } }

  /// Runs until `stop` is called.
  func start() -> Monitor<(isWanted: Bool, isOver: Bool)> {
    let run = Monitor((isWanted: true, isOver: false))
    SystemThread.start("test-churn") { [self] in
      var random = SplitMix(UInt64(count))
      do {
        let database = try Database(file)
        while run.update({ $0.isWanted }) {
          let row = Int64(random.next() % UInt64(rows)) + 1
          switch random.next() % 12 {
          case 0:
            try database.execute("DELETE FROM media WHERE id = \(row)")
            try put(row, database)
          case 1: try database.execute("VACUUM")
          default: try put(row, database)
          }
          state.withLock { $0.count += 1 }
        }
      } catch {
        state.withLock { $0.failure = "\(error)" }
      }
      run.update { $0.isOver = true }
    }
    return run
  }

  func stop(_ run: Monitor<(isWanted: Bool, isOver: Bool)>) throws {
    run.update { $0.isWanted = false }
    run.wait { $0.isOver ? () : nil }
    #expect(state.withLock { $0.failure } == nil)
  }

  private func put(_ row: Int64, _ database: Database) throws(SQLiteError) {
    let version = state.withLock { state in
      state.version += 1
      return state.version
    }
    let insert = try database.statement("INSERT OR REPLACE INTO media(id, version, bytes) VALUES(?1, ?2, ?3)")
    try insert.bind(1, row)
    try insert.bind(2, version)
    try insert.bind(3, content(version))
    try insert.run()
  }
}

private struct SplitMix: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
