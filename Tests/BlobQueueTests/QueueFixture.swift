import BlobPostgres
import BlobQueue
import BlobUpload
import Blobs
import TestSupport
import Testing

/// A queue in the database of the tests, with a destination that no other test has.
struct QueueFixture: Sendable {
  let database: TestDatabase
  let queue: SharedQueue
  let endpoint: String
  let kept: JournalDestination
  let destination: Int64

  init(machine: String = "here") throws {
    database = try #require(TestDatabase.shared, TestDatabase.reason)
    queue = try SharedQueue(database.url, on: machine)
    endpoint = "https://host.example/\(UInt64.random(in: 0 ... .max))/"
    kept = JournalDestination(endpoint: endpoint, protocolName: "tus")
    destination = try queue.destinationID(kept)
  }

  func intent(_ name: String, version: String = "1", length: Int64 = 10, source: String? = nil) -> JournalIntent {
    JournalIntent(
      source: BytePath(source ?? "/folder/\(name)"), target: endpoint + name, path: BytePath(name), length: length,
      validator: Validator(version: version, instance: "here"))
  }

  func worker(_ other: SharedQueue? = nil) throws -> QueueWorker { try QueueWorker(other ?? queue, pid: 1) }

  /// Adds files with these names, in a push of their own.
  @discardableResult func add(_ names: [String], length: Int64 = 10) throws -> Int64 {
    let push = try queue.beginPush("/folder", to: destination, by: "nobody \(names.first ?? "")")
    for start in stride(from: 0, to: names.count, by: 128) {
      let batch = names[start..<min(start + 128, names.count)].map { intent($0, length: length) }
      _ = try queue.add(batch, push: push, to: destination)
    }
    try queue.endListing(of: push)
    return push
  }

  @discardableResult func ask(_ statement: String, _ values: [String?] = []) throws -> [[String?]] {
    try PostgresPool(database.url, most: 1).query(statement, values)
  }

  /// The items by their state, counted.
  func counts() throws -> [Int: Int] {
    let rows = try ask(
      "SELECT state, count(*) FROM fullbore.queue_items WHERE destination = $1::bigint GROUP BY state",
      ["\(destination)"])
    return Dictionary(uniqueKeysWithValues: rows.map { (Int($0[0] ?? "") ?? -1, Int($0[1] ?? "") ?? -1) })
  }
}

extension QueueWorker {
  /// Notes that a claimed item is done, as the journal of its process would.
  func end(_ item: ClaimedItem, _ state: JournalEntry.State = .done, error: String? = nil) throws {
    hold([(entry: item.id, item: item)])
    try store([MirroredUpload(id: item.id, upload: item.upload, state: state, error: error)])
  }
}
