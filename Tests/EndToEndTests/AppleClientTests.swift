import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The requests of resumable uploads as Apple's clients and the drafts have them, to a server that is killed in mid-upload.
  struct AppleClientTests {
    /// Three times, so that the upload is also resumed more than once.
    @Test(arguments: DraftVersion.all) func anUploadGoesOnAfterTheServerIsKilled(_ draft: DraftVersion) async throws {
      let scratch = try Scratch()
      var server = try await ServeProcess.start(in: scratch)
      let bytes = (0..<12_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

      var client = try RawHTTPClient(port: UInt16(server.port))
      let upload = try draft.create("/2026/IMG_0001.HEIC", of: bytes.count, client)
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
        let asked = try client.ask("HEAD", upload, draft.version)
        #expect(asked.status == 204 && asked[draft.last.name] == draft.notLast)
        let offset = try #require(asked["Upload-Offset"].flatMap { Int($0) })
        #expect(offset > sent - 100_000 && offset <= sent)
        sent = offset
        try draft.append(to: upload, from: offset, of: bytes.count, client)
      }
      try client.send(Array(bytes[sent...]))
      let answer = try client.answer()
      #expect(answer.status == 201 && answer[draft.last.name] == draft.last.value)
      #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("received/2026/IMG_0001.HEIC"))) == Data(bytes))
    }
  }

  /// How a client says what it sends.
  struct DraftVersion: Sendable, CustomTestStringConvertible {
    /// nil: the final form, draft-ietf-httpbis-resumable-upload-12, which names no version.
    let interop: Int?
    static let all = [3, 5, 6, 8, nil].map { DraftVersion(interop: $0) }

    var testDescription: String { interop.map { "interop version \($0)" } ?? "final form" }
    var version: [(String, String)] { interop.map { [("Upload-Draft-Interop-Version", "\($0)")] } ?? [] }
    /// The request brings the end of the file.
    var last: (name: String, value: String) { interop == 3 ? ("Upload-Incomplete", "?0") : ("Upload-Complete", "?1") }
    var notLast: String { interop == 3 ? "?1" : "?0" }

    /// Begins an upload whose first bytes follow. Returns its path.
    func create(_ path: String, of length: Int, _ client: RawHTTPClient) throws -> String {
      if interop != nil {
        // The server gives the upload's URL before the body has arrived.
        try client.head(
          "PUT", path, version + [last, ("Content-Type", "image/heic"), ("Content-Length", "\(length)")])
        let interim = try client.readHead()
        #expect(interim.status == 104)
        return try #require(interim["Location"])
      }
      let created = try client.ask(
        "POST", path,
        [
          (last.name, notLast), ("Upload-Length", "\(length)"), ("Content-Type", "image/heic"), ("Content-Length", "0"),
        ])
      #expect(created.status == 201)
      let upload = try #require(created["Location"])
      try append(to: upload, from: 0, of: length, client)
      return upload
    }

    /// Sends the head of a request whose body has all bytes from `offset` on.
    func append(to upload: String, from offset: Int, of length: Int, _ client: RawHTTPClient) throws {
      let type = interop.map { $0 < 6 } == true ? "image/heic" : "application/partial-upload"
      try client.head(
        "PATCH", upload,
        version + [
          last, ("Content-Type", type), ("Upload-Offset", "\(offset)"), ("Content-Length", "\(length - offset)"),
        ])
    }
  }
}
