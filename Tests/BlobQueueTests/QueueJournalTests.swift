import BlobQueue
import BlobTesting
import BlobUpload
import Blobs
import TestSupport
import Testing

/// The notes in the journal of one process are there for the next one.
@Suite(.enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct QueueJournalTests {
  private let fixture: QueueFixture
  private let folder: ScratchFolder

  init() throws {
    fixture = try QueueFixture()
    folder = try ScratchFolder()
  }

  /// A process with its worker, its journal, and what it has claimed.
  private struct Sender {
    let worker: QueueWorker
    let journal: Journal
    let entries: [JournalEntry]
    let destination: Int64
  }

  private func sender(_ name: String) async throws -> Sender {
    let worker = try fixture.worker()
    let journal = try await Journal(at: folder.path.appending(BytePath(name)), as: .current, mirror: worker)
    let destination = try await journal.destinationID(fixture.kept)
    let items = try worker.claim(at: fixture.destination)
    let entries = try await journal.adopt(items.map { ($0.upload, $0.parts, destination) })
    worker.hold(zip(entries, items).map { (entry: $0.id, item: $1) })
    return Sender(worker: worker, journal: journal, entries: entries, destination: destination)
  }

  private func claim(_ sender: Sender) async throws -> [JournalClaim] {
    try await sender.journal.claim(sender.entries.map(\.intent), destination: sender.destination)
  }

  @Test func theNextProcessGoesOnWithTheSessionAndItsParts() async throws {
    try fixture.add(["a"])
    let first = try await sender("first")
    let id = try #require(first.entries.first?.id)
    _ = try await claim(first)
    first.journal.opened(id, UploadSession(state: ["url": "https://host.example/upload"]))
    first.journal.receipt(id, PartReceipt(number: 2, start: 5, held: 5, state: ["etag": "b"]))
    first.journal.receipt(id, PartReceipt(number: 1, start: 0, held: 5, state: ["etag": "a"]))
    try await first.journal.flush()
    await first.journal.close()
    first.worker.close()
    let second = try await sender("second")
    defer { second.worker.close() }
    guard case .resume(let entry)? = try await claim(second).first else {
      Issue.record("the upload does not go on")
      return
    }
    #expect(entry.session?.state == ["url": "https://host.example/upload"])
    #expect(entry.receipts.map(\.number) == [1, 2])
    second.journal.restarted(entry.id)
    try await second.journal.flush()
    let parts = try fixture.ask(
      """
      SELECT 1 FROM fullbore.queue_parts p JOIN fullbore.queue_items i ON p.item = i.id WHERE destination = $1::bigint
      """, ["\(fixture.destination)"])
    #expect(parts.isEmpty)
    await second.journal.close()
  }

  @Test func nothingIsCommittedThatTheDatabaseRefuses() async throws {
    try fixture.add(["a"])
    let sender = try await sender("journal")
    defer { sender.worker.close() }
    let id = try #require(sender.entries.first?.id)
    _ = try await claim(sender)
    try fixture.ask("UPDATE fullbore.queue_items SET fence = fence + 1 WHERE worker = $1", [sender.worker.name])
    sender.journal.opened(id, UploadSession(state: ["url": "https://host.example/upload"]))
    await #expect(throws: JournalError.self) { try await sender.journal.flush() }
    #expect(sender.worker.isLost)
    await sender.journal.close()
  }

  @Test func aChangedFileDoesNotGoOn() async throws {
    try fixture.add(["a"])
    let first = try await sender("first")
    let id = try #require(first.entries.first?.id)
    _ = try await claim(first)
    first.journal.opened(id, UploadSession(state: ["url": "https://host.example/upload"]))
    try await first.journal.flush()
    await first.journal.close()
    first.worker.close()
    let second = try await sender("second")
    defer { second.worker.close() }
    let claims = try await second.journal.claim([fixture.intent("a", version: "2")], destination: second.destination)
    guard case .replaced? = claims.first else {
      Issue.record("another version goes on where the first one has ended")
      return
    }
    await second.journal.close()
  }
}
