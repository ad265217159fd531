import BlobHTTP
import BlobSQLite
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// A file whose name is taken at the destination is sent under the next name, and the journal has it all the time.
@Suite struct NameTakenTests {
  private func queue(_ desk: Desk, _ script: Script) -> UploadQueue {
    var queue = desk.queue(script)
    queue.naming.taken = .rename { [destination = queue.uploader.destination] item in
      var (item, numbered) = (item, item.numbered ?? NumberedName(item.target.path))
      guard numbered.count() else { return nil }
      item.numbered = numbered
      item.target = destination.target(numbered.path, length: item.info.length)
      return item
    }
    return queue
  }

  private var aIsTaken: Script {
    Script { _, request throws(TransportError) in
      let isTaken = request.url.path.hasSuffix("/a")
      if request.method == "PUT" { return .status(isTaken ? 412 : 201) }
      return isTaken ? .status(200, ["Content-Length": "5"]) : .status(404)
    }
  }

  @Test func theNextNameTakesThePlaceOfTheEntry() async throws {
    let desk = try await Desk()
    #expect(try await desk.run(queue(desk, aIsTaken), ["a"]).sent == 1)
    #expect(try await desk.journal.unfinished().isEmpty)
  }

  /// The trigger makes the claim of the next name fail, as a full disk or a process that is killed there.
  @Test func theEntryStaysIfTheNextNameCannotBeClaimed() async throws {
    let desk = try await Desk()
    try Database(desk.journal.path).execute(
      """
      CREATE TRIGGER refusal BEFORE INSERT ON upload WHEN NEW.target LIKE '%/a-2'
      BEGIN SELECT RAISE(ABORT, 'refused'); END
      """)
    let outcomes = try await desk.run(queue(desk, aIsTaken), ["a"])
    #expect(outcomes.error("a")?.status == 412)
    let left = try await desk.journal.unfinished()
    #expect(left.map(\.intent.path) == ["a"] && left.first?.state == .failed)
    #expect(left.first?.owner == nil)
  }

  @Test func theEntryStaysWhileAnotherProcessSendsToTheNextName() async throws {
    let (folder, process) = (JournalFolder(), IdleProcess())
    let theirs = try await folder.open(as: process.mark)
    let mine = try await folder.open()
    let id = try await mine.destinationID(.tus)
    let old = try #require(try await mine.claim(intent("a")).id)
    _ = try await theirs.claim(intent("a-2", from: "/other/a"))
    let next = intent("a-2", from: "/gallery/a")
    let busy = try await mine.claim([next], destination: id, insteadOf: old)
    #expect(busy[0].owner == process.mark)
    #expect(try await mine.unfinished().contains { $0.id == old })
    process.end()
    let fresh = try await mine.claim([next], destination: id, insteadOf: old)
    #expect(fresh[0].name == "fresh")
    #expect(try await mine.unfinished().filter { $0.intent.source == "/gallery/a" }.map(\.id) == [fresh[0].id])
    await theirs.close()
    await mine.close()
  }
}
