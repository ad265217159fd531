import BlobPostgres
@testable import BlobServer
import BlobServerS3
import BlobTesting
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

/// Multipart uploads that a server has begun, and of which no note tells.
struct BucketIntentTests {
  /// A bucket whose server begins multipart uploads, and answers as if it had not.
  static func losingBucket(listsUploads: Bool = true) -> S3Peer {
    struct Reference { weak var peer: S3Peer? }
    let reference = Mutex(Reference())
    var options = S3Peer.Options()
    options.refuse = { _, request in
      guard request.query("uploads") != nil else { return nil }
      if request.method == "GET" { return listsUploads ? nil : (403, "AccessDenied") }
      reference.withLock { $0.peer }?.change { state in
        state.uploads["lost"] = S3PeerUpload(key: "in/a.bin")
        state.uploads["lost"]?.begun = Int64(time(nil))
      }
      return (500, "InternalError")
    }
    let bucket = S3Peer(options)
    reference.withLock { $0.peer = bucket }
    return bucket
  }

  /// The intents in the folder, after they have got older.
  private func intents(in folder: TestFolder, older seconds: Int) throws -> Int {
    let hidden = folder.path.appending(".fullbore")
    let names = TestFolder.names(hidden).filter { $0.bytes.starts(with: "intent-".utf8) }
    for name in names {
      var times = [
        timespec(tv_sec: time(nil) - seconds, tv_nsec: 0), timespec(tv_sec: time(nil) - seconds, tv_nsec: 0),
      ]
      _ = hidden.appending(name).withCString { utimensat(AT_FDCWD, $0, &times, 0) }
    }
    return names.count
  }

  private func beginLosing(_ store: S3Store) throws {
    let reception = try store.begin(.random(), for: ServedPath("a.bin".utf8), length: 20 << 20, modified: nil)
    reception.expect(20 << 20)
    #expect(throws: ServerError.self) { try pattern(9 << 20).withUnsafeBytes { try reception.append(.bytes($0)) } }
  }

  @Test(arguments: [true, false]) func whatNoNoteTellsOfIsEnded(isRestarted: Bool) throws {
    let (peer, folder) = (Self.losingBucket(), try TestFolder())
    var store = try peer.store(in: folder, expire: .seconds(3600), maxTotal: nil)
    defer { store.close() }
    try beginLosing(store)
    peer.change { state in
      for (id, key) in [("older", "in/a.bin"), ("of another name", "in/a.bin2")] {
        state.uploads[id] = S3PeerUpload(key: key)
        state.uploads[id]?.begun = Int64(time(nil)) - (id == "older" ? 300 : 0)
      }
    }
    if isRestarted {
      store.close()
      store = try peer.store(in: folder, expire: .seconds(3600), maxTotal: nil)
    }
    _ = store.expire { _ in false }
    #expect(peer.uploads["lost"] != nil, "its request may still be on its way")
    #expect(try intents(in: folder, older: 20) == 1)
    _ = store.expire { _ in false }
    #expect(Set(peer.uploads.keys) == ["older", "of another name"])
    #expect(try intents(in: folder, older: 1200) == 1)
    _ = store.expire { _ in false }
    #expect(try intents(in: folder, older: 0) == 0)
    #expect(peer.uploads.count == 2)
  }

  @Test func aBucketThatDoesNotListIsToldOnce() throws {
    let (peer, folder) = (Self.losingBucket(listsUploads: false), try TestFolder())
    let store = try peer.store(in: folder, expire: .seconds(3600), maxTotal: nil)
    defer { store.close() }
    try beginLosing(store)
    #expect(try intents(in: folder, older: 20) == 1)
    for _ in 0..<3 { _ = store.expire { _ in false } }
    let lines = store.lookAgain()
    #expect(lines.count == 1 && lines.first?.contains("ListBucketMultipartUploads") == true, "\(lines)")
    #expect(store.lookAgain().isEmpty)
    #expect(try intents(in: folder, older: 1200) == 1)
    _ = store.expire { _ in false }
    #expect(try intents(in: folder, older: 0) == 0 && peer.uploads.count == 1)
  }

  @Test func whatWasBegunAndNotedIsNotEnded() throws {
    let (peer, folder) = (S3Peer(), try TestFolder())
    let store = try peer.store(in: folder, expire: .seconds(3600), maxTotal: nil)
    defer { store.close() }
    let reception = try store.begin(.random(), for: ServedPath("a.bin".utf8), length: 20 << 20, modified: nil)
    reception.expect(20 << 20)
    try pattern(9 << 20).withUnsafeBytes { try reception.append(.bytes($0)) }
    #expect(try intents(in: folder, older: 0) == 0)
    // Another request for the same name has left an intent.
    folder.write(BytePath(".fullbore/intent-\(UploadID.random())"), Array("a.bin\n".utf8))
    #expect(try intents(in: folder, older: 20) == 1)
    _ = store.expire { _ in false }
    #expect(peer.uploads.count == 1)
  }
}

/// Intents of several servers.
@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct SharedIntentTests {
  private let database: TestDatabase

  init() throws { database = try #require(TestDatabase.shared, TestDatabase.reason) }

  @discardableResult private func ask(_ statement: String) throws -> [[String?]] {
    try PostgresPool(database.url, most: 1).query(statement)
  }

  private func keep(_ peer: S3Peer, node: String) throws {
    try ask(
      """
      INSERT INTO fullbore.intents (id, place, object, node, kept)
      VALUES ('\(UploadID.random())', '\(peer.place)', 'a.bin', '\(node)',
        clock_timestamp() - interval '3 seconds')
      """)
  }

  @Test func whatADeadServerHasBegunIsEndedOnceNoOtherOneBegins() throws {
    let peer = S3Peer()
    let store = try peer.store(in: database, expire: .seconds(3600))
    defer { store.close() }
    peer.change { state in
      state.uploads["lost"] = S3PeerUpload(key: "in/a.bin")
      state.uploads["lost"]?.begun = Int64(time(nil))
    }
    try keep(peer, node: "dead")
    // The upload may be the one of this server, which has not noted it yet.
    let living = UploadID.random().description
    try ask("INSERT INTO fullbore.nodes VALUES ('\(living)', clock_timestamp() + interval '1 hour')")
    try keep(peer, node: living)
    _ = store.expire { _ in false }
    #expect(peer.uploads.count == 1)
    try ask("DELETE FROM fullbore.nodes WHERE node = '\(living)'")
    _ = store.expire { _ in false }
    #expect(peer.uploads.isEmpty)
    let count = "SELECT count(*) FROM fullbore.intents WHERE place = '\(peer.place)'"
    #expect(try ask(count) == [["2"]], "a request may still be on its way")
    try ask("UPDATE fullbore.intents SET kept = kept - interval '1 hour' WHERE place = '\(peer.place)'")
    _ = store.expire { _ in false }
    #expect(try ask(count) == [["0"]])
  }

  /// A server is stopped between the intent and the request, and goes on after another one has taken the intent.
  @Test func aServerWithoutItsIntentBeginsNothing() throws {
    struct Stores { var other: S3Store? }
    let stores = Mutex(Stores())
    let isDone = Atomic(false)
    let url = database.url
    var options = S3Peer.Options()
    options.refuse = { _, request in
      guard request.method == "POST", request.query("uploads") != nil, !isDone.exchange(true, ordering: .relaxed),
        let other = stores.withLock({ $0.other })
      else { return nil }
      for _ in 0..<1000 {
        let rows = try? PostgresPool(url, most: 1).query(
          """
          WITH n AS (UPDATE fullbore.nodes SET lease = clock_timestamp() - interval '1 second'
            WHERE node IN (SELECT node FROM fullbore.intents WHERE NOT is_taken AND object = 'stopped.bin'))
          SELECT 1 FROM fullbore.intents WHERE object = 'stopped.bin' AND is_taken
          """)
        if rows?.isEmpty == false { break }
        _ = other.expire { _ in false }
      }
      return nil
    }
    let peer = S3Peer(options)
    let (stopped, other) = (
      try peer.store(in: database, expire: .seconds(3600)), try peer.store(in: database, expire: .seconds(3600))
    )
    stores.withLock { $0.other = other }
    defer {
      stores.withLock { $0.other = nil }
      stopped.close()
      other.close()
    }
    let target = try ServedPath("stopped.bin".utf8)
    let reception = try stopped.begin(.random(), for: target, length: 20 << 20, modified: nil)
    let record = UploadRecord(reception.id, target: target, length: 20 << 20)
    try stopped.save(record)
    reception.expect(20 << 20)
    let bytes = pattern(20 << 20)
    let error = #expect(throws: ServerError.self) { try bytes.withUnsafeBytes { try reception.append(.bytes($0)) } }
    #expect(error?.isLossOfClaim == true && isDone.load(ordering: .relaxed), "\(error as Any)")
    #expect(try eventually { peer.uploads.isEmpty })
    let next = try stopped.reopen(record.id)
    next.expect(20 << 20)
    try bytes.withUnsafeBytes { try next.append(.bytes($0)) }
    try next.settle()
    #expect(try stopped.publish(next, record, isSaved: true).outcome == .created)
    #expect(peer.objects["in/stopped.bin"]?.bytes == bytes && peer.uploads.isEmpty)
  }
}
