import BlobHTTP
import Blobs
import TestSupport
import Testing

@testable import BlobServer

/// What a server knows of the uploads whose bytes are arriving, and of their senders.
struct ActiveUploadTests {
  private func server() throws -> TestServer { try TestServer { $0.received = { _ in } } }

  /// Sends the head of a PUT, and a part of its body.
  private func begin(_ server: TestServer, _ path: String, length: Int, sent: Int, agent: String) throws
    -> RawHTTPClient
  {
    let client = try server.client()
    try client.head("PUT", path, [("Content-Length", "\(length)"), ("User-Agent", agent)])
    try client.send([UInt8](repeating: 7, count: sent))
    return client
  }

  private func bytes(_ server: TestServer) -> Int64 { server.server.senders.reduce(0) { $0 + $1.bytesReceived } }

  @Test func eachSenderIsListedWithItsFiles() throws {
    let server = try server()
    #expect(server.server.senders.isEmpty)
    let film = try begin(server, "/holiday/film.mov", length: 100_000, sent: 60_000, agent: "iPhone")
    let photo = try begin(server, "/a.jpg", length: 3000, sent: 1000, agent: "iPhone")
    let other = try begin(server, "/b.jpg", length: 500, sent: 200, agent: "Android")
    #expect(try eventually { bytes(server) == 61_200 })
    let senders = server.server.senders
    #expect(senders.map(\.sender?.agent) == ["Android", "iPhone"])
    #expect(senders.map(\.sender?.address) == ["127.0.0.1", "127.0.0.1"] && senders.map(\.count) == [1, 2])
    #expect(senders[0].uploads == [ActiveUpload(path: "b.jpg", received: 200, length: 500)])
    #expect(
      senders[1].uploads == [
        ActiveUpload(path: "holiday/film.mov", received: 60_000, length: 100_000),
        ActiveUpload(path: "a.jpg", received: 1000, length: 3000),
      ])

    // A sender stays for a moment after its file, with the bytes that it has sent.
    try other.send([UInt8](repeating: 7, count: 300))
    #expect(try other.answer().status == 201)
    #expect(try eventually { server.server.senders.first?.count == 0 })
    #expect(server.server.senders.first?.bytesReceived == 500 && server.server.senders.first?.uploads == [])
    #expect(try eventually { server.server.senders.map(\.sender?.agent) == ["iPhone"] })
    withExtendedLifetime(film) {}
    withExtendedLifetime(photo) {}
  }

  /// A request that goes on counts its own bytes as moved, and those before as received.
  @Test func aResumedUploadBeginsWhereItIs() throws {
    let server = try server()
    let upload = try server.create("film.mov", length: 10_000)
    #expect(try server.patch(upload, at: 0, [UInt8](repeating: 1, count: 4000)).status == 204)
    #expect(try eventually { server.server.senders.isEmpty })
    let client = try server.beginPatch(upload, at: 4000, length: 6000, [UInt8](repeating: 1, count: 500))
    #expect(try eventually { bytes(server) == 500 })
    let active = try #require(server.server.senders.first?.uploads)
    #expect(active == [ActiveUpload(path: "film.mov", received: 4500, length: 10_000)])
    withExtendedLifetime(client) {}
  }

  /// The parts of one file are one upload, under the name of the file.
  @Test func partsOfAFileAreOneUpload() throws {
    let server = try server()
    let places = try (0..<2).map { _ in
      let headers = [
        tus, ("Upload-Length", "1000"), ("Upload-Concat", "partial"),
        ("Upload-Metadata", "filename \(base64("film.mov"))"),
      ]
      return try #require(try server.ask("POST", "/", headers, body: [])["Location"])
    }
    let clients = try places.map {
      try server.beginPatch($0, at: 0, length: 1000, [UInt8](repeating: 1, count: 300))
    }
    #expect(try eventually { bytes(server) == 600 })
    let sender = try #require(server.server.senders.first)
    #expect(sender.count == 1)
    #expect(sender.uploads == [ActiveUpload(path: "film.mov", received: 600, length: nil)])
    withExtendedLifetime(clients) {}
  }

  @Test func aFileOfAFormIsListed() throws {
    let server = try server()
    let client = try server.client()
    let part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jpg\"\r\n\r\n"
    try client.head("POST", "/", [("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", "5000")])
    try client.send(Array(part.utf8) + [UInt8](repeating: 65, count: 1000))
    #expect(try eventually { server.server.senders.first?.uploads.first?.path == "a.jpg" })
    // The parser keeps back what may be the begin of the boundary.
    #expect(try eventually { bytes(server) >= 990 })
  }

  /// However many there are, 20 of them are told, and nothing of them stays.
  @Test func manyUploadsAreCounted() throws {
    let server = try server()
    let clients = try (0..<200).map { number in
      try begin(server, "/\(number).jpg", length: 10_000 + number, sent: 10, agent: "a")
    }
    #expect(try eventually { bytes(server) == 2000 })
    let sender = try #require(server.server.senders.first)
    #expect(sender.count == 200 && sender.uploads.count == 20 && sender.uploads[0].path == "199.jpg")
    for client in clients { client.finishSending() }
    #expect(try eventually { server.server.senders.isEmpty })
  }
}
