import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The requests of URLSession's resumable uploads, to a server that is killed in mid-upload.
  struct AppleClientTests {
    /// Three times, so that the upload is also resumed more than once.
    @Test(arguments: [3, 5, 6, 8]) func anUploadGoesOnAfterTheServerIsKilled(version: Int) async throws {
      let scratch = try Scratch()
      var server = try await ServeProcess.start(in: scratch)
      let interop = ("Upload-Draft-Interop-Version", "\(version)")
      let isLast = version == 3 ? ("Upload-Incomplete", "?0") : ("Upload-Complete", "?1")
      let type = ("Content-Type", version < 6 ? "image/heic" : "application/partial-upload")
      let bytes = (0..<12_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

      var client = try RawHTTPClient(port: UInt16(server.port))
      try client.head(
        "PUT", "/2026/IMG_0001.HEIC",
        [interop, isLast, ("Content-Type", "image/heic"), ("Content-Length", "\(bytes.count)")])
      let interim = try client.readHead()
      #expect(interim.status == 104)
      let upload = try #require(interim["Location"])
      var sent = 0
      for part in [3_000_001, 1_500_000, 4_500_000] {
        try client.send(Array(bytes[sent..<sent + part]))
        sent += part
        // The files of the server also have its records, so that this is a little before the last byte.
        let expected = sent
        let killed = server
        _ = try await until("the server has \(expected) bytes") { killed.folder.received() >= expected ? true : nil }
        killed.command.kill(SIGKILL)
        try await killed.command.wait()
        server = try await killed.startAgain(in: scratch)

        client = try RawHTTPClient(port: UInt16(server.port))
        let asked = try client.ask("HEAD", upload, [interop])
        #expect(asked.status == 204)
        let offset = try #require(asked["Upload-Offset"].flatMap { Int($0) })
        #expect(offset > sent - 100_000 && offset <= sent)
        sent = offset
        try client.head(
          "PATCH", upload,
          [
            interop, isLast, type, ("Upload-Offset", "\(offset)"), ("Content-Length", "\(bytes.count - offset)"),
          ])
      }
      try client.send(Array(bytes[sent...]))
      #expect(try client.answer().status == 201)
      #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("received/2026/IMG_0001.HEIC"))) == Data(bytes))
    }
  }
}
