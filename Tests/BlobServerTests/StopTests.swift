import BlobServer
import Blobs
import Testing

struct StopTests {
  @Test func aRequestUnderWayMayEndWithinTheGrace() throws {
    let server = try TestServer()
    let bytes = pattern(300_000)
    let client = try server.client()
    try client.head("PUT", "/x", [("Content-Length", "\(bytes.count)")])
    try client.send(Array(bytes[..<100_000]))
    #expect(try eventually { server.folder.sizeOfKept == 100_000 })
    let stop = Stop(server.server, grace: .seconds(60))
    #expect(try eventually { (try? server.client()) == nil }, "connections are still accepted")
    #expect(!stop.hasReturned)
    try client.send(Array(bytes[100_000...]))
    #expect(try client.answer().status == 201)
    #expect(try eventually { stop.hasReturned })
    #expect(server.folder.read("x") == bytes)
  }

  @Test func afterTheGraceConnectionsAreClosed() throws {
    let server = try TestServer()
    let put = try server.client()
    try put.head("PUT", "/x", [("Content-Length", "1000")])
    try put.send(pattern(400))
    let patch = try server.beginPatch(try server.create("y", length: 1000), at: 0, length: 1000, pattern(500))
    #expect(try eventually { server.folder.sizeOfKept == 900 })
    server.server.stop(grace: .milliseconds(50))
    #expect(put.isClosedByServer())
    #expect(patch.isClosedByServer())
    #expect(server.folder.sizeOfKept == 500, "a resumable upload keeps its bytes, a PUT leaves none")
    #expect(server.folder.read("x") == nil)
  }

  @Test func idleConnectionsDoNotHoldItUp() throws {
    let server = try TestServer()
    let silent = try server.client()
    let kept = try server.client()
    #expect(try kept.ask("PUT", "/x", body: [1]).status == 201)
    let begin = ContinuousClock.now
    server.server.stop(grace: .seconds(60))
    #expect(ContinuousClock.now - begin < .seconds(10))
    #expect(silent.isClosedByServer())
    #expect(kept.isClosedByServer())
  }

  @Test func aComparisonUnderWayEndsAndCanBeMadeAgain() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: 1 << 40)
    }
    // A sparse file of one tebibyte, which takes minutes to compare.
    folder.write("x", [])
    #expect(folder.extend("x", to: 1 << 40))
    let data = try #require(folder.kept.first { $0.hasSuffix(".data") })
    #expect(folder.extend(BytePath(".fullbore/\(data)"), to: 1 << 40))
    let begin = ContinuousClock.now
    do {
      let server = try TestServer(over: folder)
      let client = try server.client()
      try client.head("HEAD", upload, [tus])
      let stop = Stop(server.server, grace: .milliseconds(50))
      #expect(try eventually { stop.hasReturned })
    }
    #expect(ContinuousClock.now - begin < .seconds(10))
    #expect(folder.kept.contains(data))
  }

  @Test func manyServersComeAndGo() throws {
    for _ in 0..<100 {
      let server = try TestServer()
      #expect(try server.ask("GET", "/x").status == 404)
      server.server.stop(grace: .zero)
      #expect(throws: (any Error).self) { try server.client() }
    }
  }

  @Test func aServerMayBeStoppedTwiceAndFromAnyThread() throws {
    let server = try TestServer()
    let stops = (0..<4).map { _ in Stop(server.server, grace: .zero) }
    #expect(try eventually { stops.allSatisfy(\.hasReturned) })
    server.server.stop(grace: .zero)
    let next = try TestServer(over: server.folder)
    #expect(try next.ask("PUT", "/x", body: [1]).status == 201)
  }
}

/// Calls `stop` on its own thread.
private final class Stop: Sendable {
  private let returned = Monitor(false)

  init(_ server: Server, grace: Duration) {
    SystemThread.start("stop") { [returned] in
      server.stop(grace: grace)
      returned.update { $0 = true }
    }
  }

  var hasReturned: Bool { returned.update { $0 } }
}
