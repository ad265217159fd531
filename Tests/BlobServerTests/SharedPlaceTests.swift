import BlobClient
import BlobHTTP
import BlobPostgres
import BlobServer
import BlobServerS3
import BlobTesting
import BlobUpload
import Blobs
import Platform
import TestSupport
import Testing

/// The facts that the database, and its operator, know of the bucket of several servers.
@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct SharedPlaceTests {
  private let database: TestDatabase
  private let peer = S3Peer()

  init() throws { database = try #require(TestDatabase.shared, TestDatabase.reason) }

  private func store() throws -> S3Store { try peer.store(in: database, expire: .seconds(3600)) }

  private func ask(_ statement: String) throws -> [[String?]] {
    try PostgresPool(database.url, most: 1).query(statement)
  }

  /// An upload that a server has begun and not noted is ended by one that reaches the bucket by another URL.
  @Test func whatWasBegunIsEndedByAServerWithAnotherURL() throws {
    let first = try store()
    let other = try peer.store(in: database, expire: .seconds(3600), host: "localhost")
    defer {
      first.close()
      other.close()
    }
    peer.change { state in
      state.uploads["lost"] = S3PeerUpload(key: "in/a b.bin")
      state.uploads["lost"]?.begun = Int64(time(nil))
    }
    _ = try ask(
      """
      INSERT INTO fullbore.intents (id, place, object, node, kept)
      VALUES ('\(UploadID.random())', '\(peer.place)', 'a%20b.bin', 'dead', clock_timestamp() - interval '3 seconds')
      """)
    _ = other.expire { _ in false }
    #expect(peer.uploads.isEmpty)
  }

  /// Buckets of the same name at two endpoints are two places, and the name of a place is stored again if it is deleted.
  @Test func eachBucketIsAPlaceOfItsOwn() throws {
    let (other, first) = (S3Peer(), try store())
    let second = try other.store(in: database, expire: .seconds(3600))
    defer {
      first.close()
      second.close()
    }
    let record = try save("a.bin", in: first)
    #expect(try first.load(record.id) != nil && second.load(record.id) == nil)
    let name = peer.place
    #expect(!name.isEmpty && name != other.place)
    peer.change { $0.objects = [:] }
    _ = first.expire { _ in false }
    #expect(peer.place == name && first.lookAgain().isEmpty)
    peer.change { $0.objects = other.objects }
    _ = first.expire { _ in false }
    let lines = first.lookAgain()
    #expect(lines.count == 1 && lines.first?.contains("restart") == true, "\(lines)")
  }

  private func save(_ name: String, in store: S3Store) throws -> UploadRecord {
    let target = try ServedPath(name.utf8)
    let reception = try store.begin(.random(), for: target, length: 100, modified: nil)
    let record = UploadRecord(reception.id, target: target, length: 100)
    try store.save(record)
    return record
  }

  /// The operator is told the text of the database, and the client is not.
  @Test func aRefusedStatementIsToldToTheOperator() throws {
    let store = try store()
    defer { store.close() }
    let reception = try store.begin(.random(), for: ServedPath("a.bin".utf8), length: 100, modified: nil)
    let record = UploadRecord(reception.id, target: try ServedPath("a.bin".utf8), length: 100)
    _ = try ask("ALTER TABLE fullbore.uploads ADD CONSTRAINT none CHECK (place <> '\(peer.place)')")
    defer { _ = try? ask("ALTER TABLE fullbore.uploads DROP CONSTRAINT none") }
    let error = #expect(throws: ServerError.self) { try store.save(record) }
    #expect(error?.status == 500 && error?.message.contains("none") == false, "\(error as Any)")
    let lines = store.lookAgain()
    #expect(lines.contains { $0.contains("none") && !$0.contains("\t") }, "\(lines)")
  }

  @Test func aWrongURLIsToldWithoutItsPassword() throws {
    for place in ["127.0.0.1:1/x", "[::1/x", "h/x?no=1"] {
      let url = "postgres://me:hunter2@\(place)"
      let error = #expect(throws: ServerError.self) { try peer.store(in: url, expire: .seconds(3600)) }
      #expect(error?.message.contains("hunter2") == false, "\(error as Any)")
    }
  }
}

extension S3Peer {
  /// A store in `in/` of the bucket, which shares its uploads with all others. `host`: of the bucket's URL.
  func store(
    in database: TestDatabase, expire: Duration, host: String = "127.0.0.1"
  ) throws(ServerError) -> S3Store {
    try store(in: database.url, expire: expire, host: host)
  }

  func store(in url: String, expire: Duration, host: String = "127.0.0.1") throws(ServerError) -> S3Store {
    let destination = destination(host: host)
    let records = try PostgresRecords(url, for: destination, over: SocketTransport(.init(adapts: false)))
    return try store(records, expire: expire, at: destination)
  }

  private static let fleet = "in/.fullbore/fleet"
  /// The name of the place in the database.
  var place: String { objects[Self.fleet].map { String(decoding: $0.bytes, as: UTF8.self) } ?? "" }
  /// The names of all objects but that.
  var files: [String] { objects.keys.filter { $0 != Self.fleet } }
}
