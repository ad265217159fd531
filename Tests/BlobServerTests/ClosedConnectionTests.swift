@testable import BlobServer
import Blobs
import Platform
import Testing

/// Connections whose client has closed, and whose place others wait for.
struct ClosedConnectionTests {
  private func openFiles() -> Int { TestFolder.names("/proc/self/fd").count }

  /// The timeouts are far longer than a test waits.
  @Test(arguments: ["", "G", "GET / HTTP/1.1\r\nHost", "GET / HTTP/1.1\r\nHost: localhost\r\n"])
  func aHeadThatIsCutFreesItsConnection(_ head: String) throws {
    let server = try TestServer {
      $0.headTimeout = .seconds(600)
      $0.idleTimeout = .seconds(600)
    }
    #expect(try server.ask("GET", "/x").status == 404)
    let before = openFiles()
    for _ in 0..<200 {
      let client = try server.client()
      try client.send(Array(head.utf8))
    }
    #expect(try eventually { openFiles() <= before + 2 })
  }

  @Test func aBodyThatIsCutFreesItsConnection() throws {
    let server = try TestServer {
      $0.headTimeout = .seconds(600)
      $0.idleTimeout = .seconds(600)
    }
    #expect(try server.ask("GET", "/x").status == 404)
    let before = openFiles()
    for _ in 0..<200 {
      let client = try server.client()
      try client.head("PUT", "/x", [("Content-Length", "100")])
      try client.send([1])
    }
    #expect(try eventually { openFiles() <= before + 2 && server.folder.kept.isEmpty })
  }

  /// A client that only stops sending still gets its answers.
  @Test func whoStopsSendingIsAnswered() throws {
    let server = try TestServer()
    let bytes = pattern(5 << 20)
    server.folder.write("x", bytes)
    let client = try server.client()
    try client.head("PUT", "/y", [("Content-Length", "3")])
    try client.send([1, 2, 3] + Array("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    client.finishSending()
    #expect(try client.answer().status == 201)
    #expect(try client.answer().body == bytes)
  }

  @Test func onlySoManyConnectionsLinger() throws {
    let housekeeper = try Housekeeper(mostLingering: 2, patience: .seconds(60))
    housekeeper.start([], try StreamEnds())
    defer { housekeeper.stop() }
    var clients: [Descriptor] = []
    for _ in 0..<5 {
      var ends: [Int32] = [-1, -1]
      #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
      clients.append(Descriptor(ends[1]))
      housekeeper.linger(Descriptor(ends[0]))
    }
    let clock = ContinuousClock.now
    let isClosed = { (client: Descriptor) in
      var byte: UInt8 = 0
      return recv(client.number, &byte, 1, Int32(MSG_DONTWAIT)) == 0
    }
    #expect(try eventually { clients.prefix(3).allSatisfy(isClosed) })
    #expect(ContinuousClock.now - clock > .seconds(4) || !clients.suffix(2).contains(where: isClosed))
  }
}
