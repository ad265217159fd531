import BlobServer
import Blobs
import TestSupport
import Testing

// Room, claims and expiry of parts.
extension TusConcatenationTests {
  @Test func roomIsGivenBack() throws {
    let folder = try TestFolder()
    do {
      let server = try TestServer(over: folder) { $0.maxTotal = 3000 }
      let parts = try server.parts(pattern(1000), cuts: [400])
      #expect(try server.join(parts, name: "x").status == 201)
      let waiting = [try server.createPart(length: 1000), try server.createPart(length: 1000)]
      let full = [tus, ("Upload-Length", "1"), ("Upload-Concat", "partial")]
      #expect(try server.ask("POST", "/", full, body: []).status == 507)
      let final = try #require(try server.join(waiting, name: "y")["Location"])
      #expect(try server.ask("DELETE", final, [tus]).status == 204)
      #expect(try server.ask("HEAD", waiting[0], [tus]).status == 410)
      // Bytes that are already stored need no space in the end.
      #expect(try server.join(server.parts(pattern(1000), cuts: [400]), name: "x").status == 201)
      _ = try server.createPart(length: 2000)
      #expect(try server.ask("POST", "/", full, body: []).status == 507)
    }
    let server = try TestServer(over: folder) { $0.maxTotal = 3000 }
    let full = [tus, ("Upload-Length", "1"), ("Upload-Concat", "partial")]
    #expect(try server.ask("POST", "/", full, body: []).status == 507)
  }

  @Test func aClaimedPartEndsWithItsFinal() throws {
    let server = try TestServer()
    let parts = [try server.createPart(length: 2), try server.createPart(length: 2)]
    let final = try #require(try server.join(parts, name: "x")["Location"])
    #expect(try server.ask("DELETE", parts[0], [tus]).status == 409)
    #expect(try server.ask("DELETE", final, [tus]).status == 204)
    for upload in parts + [final] { #expect(try server.ask("HEAD", upload, [tus]).status == 410) }
    #expect(server.folder.kept.isEmpty)
    // An unclaimed part can be deleted alone.
    let free = try server.createPart(length: 2)
    #expect(try server.ask("DELETE", free, [tus]).status == 204)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func finalsAndPartsExpireTogether() throws {
    let server = try TestServer { $0.expire = .milliseconds(400) }
    let parts = [try server.createPart(length: 2), try server.createPart(length: 2)]
    let final = try #require(try server.join(parts, name: "x")["Location"])
    #expect(try server.patch(parts[0], at: 0, [1, 2]).status == 204)
    #expect(try eventually { server.folder.kept.isEmpty })
    for upload in parts + [final] { #expect(try server.ask("HEAD", upload, [tus]).status == 410) }
  }

  /// The first part was completed long ago while the second is still being uploaded.
  @Test func aClaimedPartWaitsForTheOthers() throws {
    let folder = try TestFolder()
    var (parts, final): ([String], String?) = ([], nil)
    do {
      let server = try TestServer(over: folder)
      parts = [try server.createPart(length: 2), try server.createPart(length: 2)]
      #expect(try server.patch(parts[0], at: 0, [1, 2]).status == 204)
      final = try server.join(parts, name: "x")["Location"]
      #expect(try server.patch(parts[1], at: 0, [3]).status == 204)
    }
    for (upload, kind) in [(parts[0], "data"), (parts[0], "info"), (final!, "info"), (parts[1], "info")] {
      folder.age(kept(upload, kind), seconds: 7200)
    }
    let server = try TestServer(over: folder) { $0.expire = .seconds(3600) }
    #expect(try server.offset(parts[0]) == 2)
    #expect(try server.patch(parts[1], at: 1, [4]).status == 204)
    #expect(try server.offset(final!) == 4)
    #expect(folder.read("x") == [1, 2, 3, 4])
  }
}
