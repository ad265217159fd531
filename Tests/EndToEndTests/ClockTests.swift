import BlobHTTP
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The clock of a server may differ from that of a file system in the network, and a wrong clock is put right while it runs.
  struct ClockTests {
    @Test(arguments: [-7200, 7200]) func uploadsAreAsOldAsTheirFileSystemSays(_ seconds: Int) async throws {
      let scratch = try Scratch()
      let server = try await ServeProcess.start(
        in: scratch, "--expire", "1h", environment: try Shim.environment(.clockAhead(seconds), in: scratch))
      let version = ("Tus-Resumable", "1.0.0")
      func ask(_ method: String, _ path: String, _ head: [(String, String)], _ body: [UInt8]? = nil) throws
        -> RawHTTPClient.Answer
      {
        try RawHTTPClient(port: UInt16(server.port)).ask(method, path, [version] + head, body: body)
      }
      let name = ("Upload-Metadata", "filename YQ==")
      let upload = try #require(try ask("POST", "/", [("Upload-Length", "2"), name], [])["Location"])
      let octets = ("Content-Type", "application/offset+octet-stream")
      #expect(try ask("PATCH", upload, [("Upload-Offset", "0"), octets], [1]).status == 204)
      let answer = try ask("HEAD", upload, [])
      #expect(answer.status == 200)
      // The client compares this with the Date of the response.
      let expires = try #require(answer["Upload-Expires"].flatMap { HTTPDate.seconds($0) })
      let left = expires - Int64(Date().timeIntervalSince1970) - Int64(seconds)
      #expect(3500...3600 ~= left, "\(left)")
      #expect(try ask("PATCH", upload, [("Upload-Offset", "1"), octets], [2]).status == 204)
      #expect(try ask("HEAD", upload, []).status == 200)
    }
  }
}
