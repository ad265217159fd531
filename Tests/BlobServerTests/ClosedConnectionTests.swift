@testable import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// Connections that the client has closed must not keep their place from others.
struct ClosedConnectionTests {
  private func openFiles() -> Int { TestFolder.names("/proc/self/fd").count }

  /// The timeouts are far longer than the test waits, so the server must notice the closed connection.
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

  /// A client that has only shut down its sending side still gets its responses.
  @Test func aClientThatShutsDownSendingStillGetsResponses() throws {
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

  /// After an error response the server keeps a connection open for some seconds, so that the client can read the
  /// response.
  @Test func onlySoManyConnectionsLinger() throws {
    let folder = try TestFolder()
    let options = ServerOptions(folder: folder.path, port: 0)
    let listener = try Listener(options.address, options.port)
    let store = try FileStore(folder.path, expire: .seconds(60), maxTotal: nil, readOnly: false)
    let service = Service(options, store, HostRule(listener, options))
    service.start()
    let loop = try EventLoop(service, listener.socket, nil, most: 100, mostLingering: 2)
    loop.start()
    defer {
      loop.post(.cut)
      loop.join()
      service.stop()
      store.close()
    }
    let start = ContinuousClock.now
    let clients = try (0..<5).map { _ in
      let client = try RawHTTPClient(port: listener.port)
      try client.send(Array("nonsense\r\n\r\n".utf8))
      #expect(try client.answer().status == 400)
      return client
    }
    func isClosed(_ client: RawHTTPClient) -> Bool {
      do { try client.send([1]) } catch { return true }
      return false
    }
    #expect(try eventually { clients.prefix(3).allSatisfy(isClosed) })
    #expect(ContinuousClock.now - start > .seconds(4) || !clients.suffix(2).contains(where: isClosed))
  }
}
