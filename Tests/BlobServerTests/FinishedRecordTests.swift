import BlobServer
import Blobs
import Testing

/// The number of records of finished uploads is limited, whatever clients do.
struct FinishedRecordTests {
  private func open(_ folder: TestFolder, _ limits: FinishedRecords.Limits) throws -> FileStore {
    try FileStore(folder.path, expire: .seconds(3600), finishedRecords: limits)
  }

  /// A finished upload without content.
  private func finish(_ store: FileStore, _ name: String, metadata: String = "") throws -> UploadID {
    let reception = try store.begin(length: 0)
    let record = UploadRecord(reception.id, target: try ServedPath(name.utf8), length: 0, metadata: metadata)
    try store.save(record)
    _ = try store.publish(reception, record, isSaved: true)
    return record.id
  }

  private func remembered(_ store: FileStore, _ ids: [UploadID]) throws -> [UploadID] {
    try ids.filter { try store.load($0)?.isFinished == true }
  }

  @Test func theOldestGoWhereThereAreTooMany() throws {
    let folder = try TestFolder()
    var store = try open(folder, .init(count: 3))
    let ids = try (0..<5).map { try finish(store, "f\($0)") }
    #expect(try remembered(store, ids) == Array(ids[2...]))
    #expect(folder.kept.count == 3)
    #expect(store.unfinished == 0)
    // The published file stays.
    #expect(folder.read("f0") == [])
    store.close()
    for (age, id) in ids.reversed().enumerated() { folder.age(BytePath(".fullbore/\(id).done"), seconds: 10 * age) }
    store = try open(folder, .init(count: 2))
    #expect(try remembered(store, ids) == Array(ids[3...]))
    store.delete(ids[3])
    let last = try finish(store, "f5")
    #expect(try remembered(store, ids + [last]) == [ids[4], last])
    store.close()
  }

  @Test func theirBytesAreBounded() throws {
    let folder = try TestFolder()
    let store = try open(folder, .init(bytes: 25_000))
    let metadata = "filename \(String(repeating: "A", count: 10_000))"
    let ids = try (0..<10).map { try finish(store, "f\($0)", metadata: metadata) }
    #expect(try remembered(store, ids) == Array(ids[8...]))
    #expect(folder.kept.count == 2)
    store.close()
  }

  @Test func aFinalUploadGoesWithItsParts() throws {
    let folder = try TestFolder()
    let store = try open(folder, .init(count: 3))
    var random = SystemRandomNumberGenerator()
    let parts = try (0..<2).map { _ in
      let reception = try store.begin(length: 0)
      let record = UploadRecord(reception.id, target: try ServedPath("part".utf8), length: 0, .partial)
      try store.save(record)
      return record.id
    }
    let text = "final;" + parts.map { "/\($0)" }.joined(separator: " ")
    let final = UploadRecord(
      UploadID(using: &random), target: try ServedPath("x".utf8), length: 0, .final(parts, text: text))
    try store.save(final)
    let joined = try #require(store.abilities.joining).join(final)
    _ = try store.publish(joined, final, isSaved: true)
    #expect(folder.kept.count == 4)
    let id = try finish(store, "y")
    #expect(folder.kept == ["\(id).done"])
    store.close()
  }
}
