import Blobs
import Testing

struct ConnectionTests {
  /// Each connection needs two descriptors for its ends and one for its file, all in this process.
  @Test func aThousandUploadsAtOnceAllArrive() throws {
    let server = try TestServer()
    let bytes = pattern(3000)
    let clients = try (0..<1000).map { _ in try server.client() }
    for (index, client) in clients.enumerated() {
      try client.head("PUT", "/\(index)", [("Content-Length", "\(bytes.count)")])
      try client.send(Array(bytes[..<1000]))
    }
    #expect(try eventually { server.folder.sizeOfKept == 1_000_000 })
    #expect(try server.ask("GET", "/nothing").status == 404, "one more is served beside them")
    for client in clients { try client.send(Array(bytes[1000...])) }
    let statuses = try clients.map { try $0.answer().status }
    #expect(statuses.allSatisfy { $0 == 201 })
    #expect(server.folder.read("0") == bytes)
    #expect(server.folder.read("999") == bytes)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func aThousandIdleConnectionsAreHeld() throws {
    let server = try TestServer()
    let clients = try (0..<1000).map { _ in try server.client() }
    for _ in 0..<2 {
      for client in clients { #expect(try client.ask("GET", "/nothing").status == 404) }
    }
  }

  @Test func aSilentConnectionIsClosed() throws {
    let server = try TestServer { $0.idleTimeout = .seconds(1) }
    let silent = try server.client()
    let slow = try server.client()
    try slow.head("PUT", "/x", [("Content-Length", "10")])
    try slow.send([1])
    #expect(silent.isClosedByServer())
    #expect(slow.isClosedByServer())
    #expect(try eventually { server.folder.kept.isEmpty })
  }
}
