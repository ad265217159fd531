import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// An upload at the server that another upload replaces stays in the journal until the server has confirmed its
/// deletion.
@Suite(.serialized) struct LeftoverTests {
  /// A server that accepts uploads; each PATCH of the first run fails. `deletion`: the status for DELETE; 0: the
  /// connection breaks.
  private func server(_ isFirst: Monitor<Bool>, _ deletion: Monitor<Int>) -> Script {
    let created = Mutex(0)
    return Script { _, request throws(TransportError) in
      switch request.method {
      case "POST":
        let number = created.withLock { created in
          created += 1
          return created
        }
        return .status(201, ["Location": "/up/\(number)", "Upload-Complete": "?0"])
      case "PATCH" where isFirst.update({ $0 }): throw TransportError(.broken, "the connection broke")
      case "PATCH": return .holding(1000, of: 1000, "tus")
      case "HEAD" where request.url.path.hasPrefix("/up/"):
        return isFirst.update { $0 } ? .status(503) : .at(600, of: 1000)
      case "DELETE":
        let status = deletion.update { $0 }
        if status == 0 { throw TransportError(.broken, "the connection broke") }
        return .status(status)
      default: return .status(request.method == "PUT" ? 201 : 404)
      }
    }
  }

  @Test(arguments: [0, 503]) func aDeletionThatFailsIsMadeUpForByTheNextRun(_ status: Int) async throws {
    let desk = try await Desk()
    let (isFirst, deletion) = (Monitor(true), Monitor(status))
    let script = server(isFirst, deletion)
    let queue = desk.queue(script, Tus(wholeUpTo: 0))
    #expect(try await desk.run(queue, ["a"]).error("a") != nil)
    isFirst.update { $0 = false }
    #expect(try await desk.run(queue, ["a"], seed: 1).sent == 1)
    let left = try #require(try await desk.journal.unfinished().first)
    #expect(left.isLeftover && left.owner == nil && left.state == .refused)
    #expect(left.session?.state["url"]?.hasSuffix("/up/1") == true && left.intent.path == "a")
    deletion.update { $0 = 204 }
    let count = script.requests.count
    #expect(try await desk.run(queue, ["b"]).sent == 1)
    #expect(script.requests.dropFirst(count).contains { $0.method == "DELETE" && $0.url.path == "/up/1" })
    #expect(try await desk.journal.unfinished().isEmpty)
  }

  /// The process may be killed while the server processes the request slowly.
  @Test func aLeftoverIsInTheJournalWhileTheServerIsAsked() async throws {
    let desk = try await Desk()
    let (isFirst, deletion, known) = (Monitor(true), Monitor(204), Monitor<[String?]>([]))
    let script = server(isFirst, deletion)
    let watching = CountingTransport(script) { request in
      guard request.method == "DELETE" else { return }
      let entries = try? await desk.journal.unfinished()
      known.update { $0 = entries?.filter(\.isLeftover).map { $0.session?.state["url"] } ?? [] }
    }
    #expect(try await desk.run(desk.queue(watching, Tus(wholeUpTo: 0)), ["a"]).error("a") != nil)
    isFirst.update { $0 = false }
    #expect(try await desk.run(desk.queue(watching, Tus(wholeUpTo: 0)), ["a"], seed: 1).sent == 1)
    #expect(known.update { $0 }.map { $0?.hasSuffix("/up/1") } == [true])
    #expect(try await desk.journal.unfinished().isEmpty)
  }

  @Test func anotherProtocolLeavesItForAbort() async throws {
    let desk = try await Desk()
    let isFirst = Monitor(true)
    let script = server(isFirst, Monitor(204))
    #expect(try await desk.run(desk.queue(script, Tus(wholeUpTo: 0)), ["a"]).error("a") != nil)
    isFirst.update { $0 = false }
    #expect(try await desk.run(desk.queue(script, PlainPut()), ["a"]).sent == 1)
    let left = try #require(try await desk.journal.unfinished().first)
    #expect(left.isLeftover && left.destination.protocolName == "tus" && left.session != nil)
    // The same steps as in `abort`.
    #expect(try await desk.journal.claim(entries: [left.id]).first?.entry?.isLeftover == true)
    let session = try #require(left.sessionWithParts)
    #expect(await desk.queue(script, Tus()).uploader.discard(session))
    try await desk.journal.remove([left.id])
    #expect(try await desk.journal.unfinished().isEmpty)
  }

  /// Parts have their own URLs, and many claims are made at once.
  @Test func aLeftoverKeepsItsPartsAndItsNumberIsNotReused() async throws {
    let folder = JournalFolder()
    let journal = try await folder.open()
    let id = try #require(try await journal.claim().id)
    journal.opened(id, session)
    journal.receipt(id, PartReceipt(number: 1, start: 0, held: 5, state: ["url": "https://host.example/files/1"]))
    journal.failed(id, "no")
    let others = ["b.jpg", "a.jpg", "c.jpg", "d.jpg"].map { intent($0, version: "2") }
    let claims = try await journal.claim(others, destination: journal.destinationID(.tus))
    #expect(claims.map(\.name) == ["fresh", "replaced", "fresh", "fresh"])
    let old = try #require(claims[1].entry)
    #expect(claims[1].id == id && old.id != id && Set(claims.compactMap(\.id) + [old.id]).count == 5)
    #expect(old.receipts.count == 1 && old.isLeftover)
    #expect(try await journal.unfinished().first { $0.id == old.id }?.receipts == old.receipts)
    #expect(try await journal.unfinished().first { $0.id == id }?.session == nil)
    let more = try await journal.claim([intent("e.jpg")], destination: journal.destinationID(.tus))
    #expect(more[0].id.map { $0 > old.id } == true)
    await journal.close()
  }
}
