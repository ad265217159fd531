import BlobServer
import Blobs
import Platform
import Testing

/// Bodies that are written to their file through a pipe, and the requests after them on the connection.
struct LargeBodyTests {
  private let bytes = pattern(3 << 20)

  @Test func theConnectionIsKept() throws {
    let server = try TestServer()
    let client = try server.client()
    for name in ["/a", "/b"] {
      let answer = try client.ask("PUT", name, body: bytes)
      #expect(answer.status == 201)
      #expect(answer["ETag"] != nil)
      #expect(answer["Date"] != nil)
      #expect(answer["Connection"] == nil)
    }
    #expect(try client.ask("GET", "/b").body == bytes)
    #expect(server.folder.read("a") == bytes)
  }

  /// However the bytes are split, no byte of the next request may be stored as part of the body.
  @Test(arguments: [1, 7, 100, 65_536]) func pipelinedRequestsAreSeparated(extra: Int) throws {
    let server = try TestServer()
    let client = try server.client()
    let next = Array("GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".utf8)
    try client.head("PUT", "/x", [("Content-Length", "\(bytes.count)")])
    try client.send(Array(bytes[..<(2 << 20)]))
    #expect(try eventually { server.folder.sizeOfKept == 2 << 20 })
    try client.send(Array(bytes[(2 << 20)...]) + next.prefix(extra))
    #expect(try client.answer().status == 201)
    try client.send(Array(next.dropFirst(extra)))
    let answer = try client.answer()
    #expect(answer.status == 200)
    #expect(answer.body == bytes)
  }

  @Test func tusGoesOnWhereABodyWasCut() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: bytes.count)
    do {
      let client = try server.beginPatch(upload, at: 0, length: bytes.count, Array(bytes[..<2_000_001]))
      #expect(try eventually { server.folder.sizeOfKept == 2_000_001 })
      _ = client
    }
    #expect(try server.offset(upload) == 2_000_001)
    #expect(try server.patch(upload, at: 2_000_001, Array(bytes[2_000_001...])).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aNewerRequestTakesOver() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: bytes.count)
    let older = try server.beginPatch(upload, at: 0, length: bytes.count, Array(bytes[..<(1 << 20)]))
    #expect(try eventually { server.folder.sizeOfKept == 1 << 20 })
    #expect(try server.offset(upload) == 1 << 20)
    try older.send(Array(bytes[(1 << 20)..<(2 << 20)]))
    let refusal = try older.answer()
    #expect(refusal.status == 409)
    #expect(refusal["Connection"] == "close")
    #expect(older.isClosedByServer())
    #expect(try server.patch(upload, at: 1 << 20, Array(bytes[(1 << 20)...])).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aConnectionIsClosedIfTheClientAsksForIt() throws {
    let server = try TestServer()
    let client = try server.client()
    let answer = try client.ask("PUT", "/x", [("Connection", "close")], body: bytes)
    #expect(answer.status == 201)
    #expect(answer["Connection"] == "close")
    #expect(client.isClosedByServer())
  }

  @Test func aBodyThatStallsIsGivenUp() throws {
    let server = try TestServer { $0.idleTimeout = .seconds(1) }
    let client = try server.client()
    try client.head("PUT", "/x", [("Content-Length", "\(bytes.count)")])
    try client.send(Array(bytes[..<1_000_000]))
    #expect(client.isClosedByServer())
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func stoppingKeepsWhatCame() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: bytes.count)
    let client = try server.beginPatch(upload, at: 0, length: bytes.count, Array(bytes[..<1_500_000]))
    #expect(try eventually { server.folder.sizeOfKept == 1_500_000 })
    server.server.stop(grace: .milliseconds(50))
    #expect(client.isClosedByServer())
    #expect(server.folder.sizeOfKept == 1_500_000)
  }

  @Test func manyAtOnceArrive() throws {
    let server = try TestServer()
    let clients = try (0..<100).map { _ in try server.client() }
    for (index, client) in clients.enumerated() {
      try client.head("PUT", "/\(index)", [("Content-Length", "\(bytes.count)")])
    }
    for start in stride(from: 0, to: bytes.count, by: 1 << 19) {
      for client in clients { try client.send(Array(bytes[start..<min(bytes.count, start + 1 << 19)])) }
    }
    for client in clients { #expect(try client.answer().status == 201) }
    for index in 0..<100 { #expect(server.folder.read(BytePath("\(index)")) == bytes) }
    #expect(server.folder.kept.isEmpty)
  }

  @Test func noDescriptorIsLost() throws {
    let server = try TestServer()
    func round(_ name: String) throws {
      let kept = try server.client()
      #expect(try kept.ask("PUT", "/\(name)", body: bytes).status == 201)
      #expect(try kept.ask("PUT", "/\(name)", [("Connection", "close")], body: bytes).status == 204)
      let cut = try server.client()
      try cut.head("PUT", "/\(name)", [("Content-Length", "\(bytes.count)")])
      try cut.send(Array(bytes[..<1_000_000]))
    }
    try round("first")
    #expect(try eventually { server.folder.kept.isEmpty })
    let before = TestFolder.names("/proc/self/fd").count
    for index in 0..<50 { try round("\(index)") }
    #expect(try eventually { server.folder.kept.isEmpty && TestFolder.names("/proc/self/fd").count <= before })
  }
}
