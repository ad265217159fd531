import Blobs
import Testing

/// Bodies with a content coding instead of the file itself. RFC 9110 §8.4, §15.5.16.
struct CodingTests {
  private let ietf = [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1")]

  @Test(arguments: ["gzip", "br", "identity, gzip", "x-unknown"])
  func aCodedBodyIsRefusedByEveryWayIn(_ coding: String) throws {
    let server = try TestServer()
    let coded = ("Content-Encoding", coding)
    let form = ("Content-Type", "multipart/form-data; boundary=B")
    let upload = try server.create("tus", length: 3)
    let answers = [
      try server.ask("PUT", "/put", [coded], body: [1, 2, 3]),
      try server.ask("PUT", "/ietf", [coded] + ietf, body: [1, 2, 3]),
      try server.ask("POST", "/", [coded, form], body: Array("--B--\r\n".utf8)),
      try server.ask("POST", "/", [coded, tus, ("Upload-Length", "3")], body: []),
      try server.patch(upload, at: 0, [1, 2, 3], [coded]),
    ]
    for answer in answers {
      #expect(answer.status == 415)
      #expect(answer["Accept-Encoding"] == "identity")
      #expect(answer.text.contains("Content-Encoding"))
    }
    #expect(try server.offset(upload) == 0)
    for name in ["put", "ietf", "tus"] { #expect(server.folder.read(BytePath(name)) == nil) }
  }

  @Test(arguments: ["identity", "Identity", ""]) func aBodyWithCodingIdentityOrNoneIsAccepted(_ coding: String) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", [("Content-Encoding", coding)], body: [1, 2, 3]).status == 201)
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  @Test func aCodedPartOfAFormIsRefused() throws {
    let server = try TestServer()
    let head = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\nContent-Encoding: "
    func ask(_ coding: String) throws -> Int {
      try server.ask(
        "POST", "/", [("Content-Type", "multipart/form-data; boundary=B")],
        body: Array("\(head)\(coding)\r\n\r\nabc\r\n--B--\r\n".utf8)
      ).status
    }
    #expect(try ask("gzip") == 415)
    #expect(server.folder.read("x") == nil)
    #expect(try ask("identity") == 201)
    #expect(try eventually { server.folder.kept.isEmpty })
  }
}
