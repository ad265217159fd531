import BlobPostgres
import BlobServer
import BlobServerS3
import BlobTesting
import Blobs
import TestSupport
import Testing

/// Stores in one bucket that share their uploads in a database.
@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct SharedBucketTests {
  private let database: TestDatabase
  private let peer = S3Peer()

  init() throws { database = try #require(TestDatabase.shared, TestDatabase.reason) }

  @Test(arguments: StoreCheck.all)
  func conforms(_ check: StoreCheck) async throws { try await check.run(.sharedBucket) }

  private func store() throws -> S3Store { try peer.store(in: database, expire: .seconds(3600)) }

  /// `host`: of the bucket's URL.
  private func server(host: String = "127.0.0.1") throws -> TestServer {
    let folder = try TestFolder()
    let store = try peer.store(in: database, expire: .seconds(3600), host: host)
    return TestServer(folder, try Server(ServerOptions(folder: folder.path, port: 0), store))
  }

  private func ask(_ statement: String) throws -> [[String?]] {
    try PostgresPool(database.url, most: 1).query(statement)
  }

  /// The rows of this bucket.
  private func rows() throws -> Int {
    let text = try ask("SELECT count(*) FROM fullbore.uploads WHERE place = '\(peer.place)'")[0][0]
    return try #require(text.flatMap { Int($0) })
  }

  /// As if the node of the claim were stopped: its lease has run out.
  private func take(_ id: UploadID, by store: S3Store) throws {
    let claims = try #require(store.abilities.claims)
    for _ in 0..<1000 {
      _ = try ask(
        """
        UPDATE fullbore.nodes SET lease = clock_timestamp() - interval '1 second'
        WHERE node = (SELECT node FROM fullbore.uploads WHERE id = '\(id)')
        """)
      if case .taken = try claims.claim(id, waits: false) { return }
    }
    Issue.record("the claim was not taken")
  }

  /// The servers reach the bucket by two URLs.
  @Test func eachRequestMayGoToAnotherServer() throws {
    let servers = [try server(), try server(host: "localhost"), try server()]
    let bytes = pattern((13 << 20) + 5)
    let upload = try servers[0].create("a.bin", length: bytes.count)
    var (at, turn) = (0, 1)
    for count in [3, 6 << 20, 70_000, 1, (6 << 20) + 5, 1 << 20, .max] {
      #expect(try servers[turn % 3].offset(upload) == at)
      let end = min(bytes.count, at.addingReportingOverflow(count).overflow ? .max : at + count)
      let answer = try servers[(turn + 1) % 3].patch(upload, at: at, Array(bytes[at..<end]))
      #expect(answer.status == 204, "\(answer.text)")
      (at, turn) = (end, turn + 2)
    }
    #expect(at == bytes.count)
    for server in servers { #expect(try server.offset(upload) == at) }
    #expect(peer.objects["in/a.bin"]?.bytes == bytes)
    #expect(peer.uploads.isEmpty && peer.files.count == 1, "\(peer.files)")
    let notes = try ask("SELECT count(*) FROM fullbore.notes JOIN fullbore.uploads USING (id) WHERE is_finished")
    #expect(notes == [["0"]])
  }

  /// `host`: of the bucket's URL, as the second server spells it.
  @Test(arguments: ["127.0.0.1", "localhost"]) func anUploadIsDeletedAtAnotherServer(_ host: String) throws {
    let (first, second) = (try server(), try server(host: host))
    let upload = try first.create("a.bin", length: 20 << 20)
    #expect(try first.patch(upload, at: 0, pattern((6 << 20) + 9)).status == 204)
    #expect(try second.ask("DELETE", upload, [tus]).status == 204)
    #expect([404, 410].contains(try first.ask("HEAD", upload, [tus]).status))
    #expect(try eventually { peer.uploads.isEmpty && peer.files.isEmpty })
    #expect(try eventually { try rows() == 0 })
  }

  /// The client comes back at another server before the first one has noticed that the connection is dead.
  @Test func aServerThatIsStillReceivingLetsGo() throws {
    let (first, second) = (try server(), try server())
    let bytes = pattern(12 << 20)
    let upload = try first.create("a.bin", length: bytes.count)
    let old = try first.beginPatch(upload, at: 0, length: bytes.count, bytes, sent: 9 << 20)
    #expect(try eventually { peer.uploads.values.contains { !$0.parts.isEmpty } })
    let offset = try second.offset(upload)
    #expect(offset == 8 << 20)
    #expect(try second.patch(upload, at: offset, Array(bytes[offset...])).status == 204)
    try old.send(Array(bytes[(9 << 20)...]))
    #expect(try old.answer().status == 503)
    #expect(peer.objects["in/a.bin"]?.bytes == bytes)
  }

  /// A server that was stopped goes on after another one has taken the claim. `count`: it is sending a tail, or a part.
  @Test(arguments: [1 << 20, 8 << 20]) func aServerWithoutItsClaimChangesNothing(_ count: Int) throws {
    let (zombie, other) = (try store(), try store())
    defer {
      zombie.close()
      other.close()
    }
    let bytes = pattern(20 << 20)
    let target = try ServedPath("a.bin".utf8)
    let reception = try zombie.begin(.random(), for: target, length: Int64(bytes.count), modified: nil)
    let record = UploadRecord(reception.id, target: target, length: Int64(bytes.count))
    try zombie.save(record)
    reception.expect(6 << 20)
    try reception.add(Array(bytes[..<(6 << 20)]))
    try reception.settle()
    reception.expect(Int64(count))
    // These bytes are others, so that they are noticed if they become a part of the file.
    try reception.add([UInt8](repeating: 7, count: count - 1))
    try take(record.id, by: other)
    let next = try other.reopen(record.id)
    #expect(next.length == 6 << 20)
    next.expect(9 << 20)
    try next.add(Array(bytes[(6 << 20)..<(15 << 20)]))
    try next.settle()
    // Only now the zombie's request gets its last byte.
    #expect(throws: ServerError.self) {
      try reception.add([7])
      try reception.settle()
    }
    #expect(throws: ServerError.self) { try zombie.publish(reception, record, isSaved: true) }
    #expect(throws: ServerError.self) { try zombie.save(record) }
    zombie.delete(record.id)
    next.expect(5 << 20)
    try next.add(Array(bytes[(15 << 20)...]))
    try next.settle()
    #expect(try other.publish(next, record, isSaved: true).outcome == .created)
    #expect(peer.objects["in/a.bin"]?.bytes == bytes)
    #expect(try zombie.load(record.id)?.isFinished == true)
    #expect(try eventually { peer.uploads.isEmpty && peer.files.count == 1 }, "\(peer.files)")
  }

  /// The bucket answers 404 to what the server was sending, because another server has completed the upload meanwhile.
  /// `count`: of the bytes of the request: a tail, or a part.
  @Test(arguments: [1 << 20, 8 << 20]) func aServerWhoseUploadAnotherHasFinishedAsksForThat(_ count: Int) throws {
    let (zombie, other) = (try server(), try store())
    defer { other.close() }
    let bytes = pattern(20 << 20)
    let upload = try zombie.create("a.bin", length: bytes.count)
    let id = try #require(UploadID(upload.suffix(32)))
    #expect(try zombie.patch(upload, at: 0, Array(bytes[..<(6 << 20)])).status == 204)
    let rest = Array(bytes[(6 << 20)..<((6 << 20) + count)])
    let earlier = peer.begun
    let late = try zombie.beginPatch(upload, at: 6 << 20, length: rest.count, rest, sent: rest.count - 1)
    #expect(try eventually { peer.begun > earlier })
    try take(id, by: other)
    let next = try other.reopen(id)
    next.expect(Int64(bytes.count) - next.length)
    try next.add(Array(bytes[Int(next.length)...]))
    try next.settle()
    let record = try #require(try other.load(id)).record
    #expect(try other.publish(next, record, isSaved: true).outcome == .created)
    #expect(peer.uploads.isEmpty)
    // Only now the request of the first server gets its last byte.
    try late.send([rest[rest.count - 1]])
    let answer = try late.answer()
    #expect(answer.status == 503, "\(answer.text)")
    #expect(try zombie.offset(upload) == bytes.count)
    #expect(peer.objects["in/a.bin"]?.bytes == bytes)
    #expect(try eventually { peer.files.count == 1 }, "\(peer.files)")
  }

  /// A request is still sending to a server that has lost the claim, when the client asks that server for the state.
  @Test func aServerThatHasLostItsClaimTellsWhatAnotherHasFinished() throws {
    let (own, other) = (try store(), try store())
    let folder = try TestFolder()
    let server = TestServer(folder, try Server(ServerOptions(folder: folder.path, port: 0), own))
    defer { other.close() }
    let bytes = pattern(3 << 20)
    let upload = try server.create("a.bin", length: bytes.count)
    let id = try #require(UploadID(upload.suffix(32)))
    let earlier = peer.begun
    let stuck = try server.beginPatch(upload, at: 0, length: bytes.count, bytes, sent: 1 << 20)
    #expect(try eventually { peer.begun > earlier })
    let begun = try #require(try other.load(id)).record
    try take(id, by: other)
    let next = try other.reopen(id)
    next.expect(Int64(bytes.count))
    try next.add(bytes)
    try next.settle()
    #expect(try other.publish(next, begun, isSaved: true).outcome == .created)
    // A change that has no effect shows it that it has lost the claim.
    #expect(throws: ServerError.self) { try own.save(begun) }
    #expect(try server.offset(upload) == bytes.count)
    withExtendedLifetime(stuck) {}
  }

  /// A claim that was lost and got again is another one: what was begun under the first has no effect.
  @Test func aClaimThatIsGotAgainIsAnotherOne() throws {
    let (first, second) = (try store(), try store())
    defer {
      first.close()
      second.close()
    }
    let target = try ServedPath("a.bin".utf8)
    let old = try first.begin(.random(), for: target, length: 100, modified: nil)
    let record = UploadRecord(old.id, target: target, length: 100)
    try first.save(record)
    try take(record.id, by: second)
    // The first server notices it when a change has no effect.
    #expect(throws: ServerError.self) { try first.save(record) }
    try take(record.id, by: first)
    #expect(throws: ServerError.self) {
      old.expect(10)
      try old.add(pattern(10))
      try old.settle()
    }
    #expect(try first.load(record.id)?.offset == 0)
  }

  /// What a dead server had begun and not saved is deleted by another one.
  @Test func whatADeadServerHasBegunIsDeleted() throws {
    let (dead, other) = (try store(), try store())
    defer {
      dead.close()
      other.close()
    }
    let target = try ServedPath("a.bin".utf8)
    let reception = try dead.begin(.random(), for: target, length: 20 << 20, modified: nil)
    reception.expect(20 << 20)
    try reception.add(pattern(9 << 20))
    #expect(peer.uploads.count == 1)
    #expect(other.expire { _ in false }.isEmpty && peer.uploads.count == 1, "its server lives")
    #expect(
      try eventually {
        _ = try ask("UPDATE fullbore.nodes SET lease = clock_timestamp() - interval '1 second'")
        _ = other.expire { _ in false }
        return peer.uploads.isEmpty
      })
    #expect(try eventually { try rows() == 0 })
    #expect(throws: ServerError.self) { try reception.add(pattern(11 << 20)) }
  }

  @Test func aLostConnectionIsMadeAgain() throws {
    let server = try server()
    let bytes = pattern(12 << 20)
    let upload = try server.create("a.bin", length: bytes.count)
    var at = 0
    while at < bytes.count {
      _ = try ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'fullbore'")
      let end = min(bytes.count, at + (3 << 20))
      #expect(try server.patch(upload, at: at, Array(bytes[at..<end])).status == 204)
      at = end
    }
    #expect(peer.objects["in/a.bin"]?.bytes == bytes)
  }
}

extension Reception {
  /// Appends bytes of a request that goes on.
  fileprivate func add(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try append(.bytes($0)) } }
}

extension StoreFixture {
  static let sharedBucket = StoreFixture(
    "S3Store over PostgreSQL",
    lacks: [.joining, .receptionDigests, .folders, .openVersions, .anyNames, .limit, .solitude]
  ) {
    let peer = S3Peer()
    let database = try #require(TestDatabase.shared, TestDatabase.reason)
    return { expire, _ in try peer.store(in: database, expire: expire) }
  }
}
