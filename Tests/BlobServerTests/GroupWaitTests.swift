import BlobServer
import Blobs
import TestSupport
import Testing

/// Members that wait for others which never come, because their client has given up or has sent them again in another group.
struct GroupWaitTests {
  private static let photo = pattern(3000)
  private static let film = pattern(70_000)

  private func waiting(_ server: TestServer) -> Int { server.folder.kept.count { $0.hasSuffix(".data") } }

  /// Nobody asks for the upload after that.
  @Test func aMemberGoesWhenAnotherFileGetsItsName() throws {
    let server = try TestServer()
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2)["Upload-Outcome"] == "waiting")
    #expect(waiting(server) == 1)
    #expect(try server.ask("PUT", "/a.mov", body: Self.photo).status == 201)
    #expect(try eventually { waiting(server) == 0 })
    #expect(server.folder.read("a.mov") == Self.photo)
  }

  @Test(arguments: [false, true]) func theMembersOfAnOlderGroupGoWithItsNames(_ replaces: Bool) throws {
    let server = try TestServer()
    if replaces { for name in ["a.jpg", "a.mov"] as [BytePath] { server.folder.write(name, [0]) } }
    let more = replaces ? ",overwrite \(base64("true"))" : ""
    for (name, position) in [("a.jpg", 1), ("a.mov", 2)] {
      let answer = try server.send(name, pattern(10, seed: 1), position: position, of: 3, id: "older", more: more)
      #expect(answer["Upload-Outcome"] == "waiting")
    }
    #expect(waiting(server) == 2)
    _ = try server.send("a.jpg", Self.photo, position: 1, of: 2, id: "newer", more: more)
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2, id: "newer", more: more).status == 201)
    #expect(server.folder.read("a.mov") == Self.film)
    #expect(try eventually { waiting(server) == 0 })
    #expect(server.folder.read("a.jpg") == Self.photo)
  }

  @Test func aMemberWaitsThroughARestartAndGoesThen() throws {
    let folder = try TestFolder()
    do {
      let server = try TestServer(over: folder)
      #expect(try server.send("a.mov", Self.film, position: 2, of: 2)["Upload-Outcome"] == "waiting")
    }
    let server = try TestServer(over: folder)
    // The server looks for complete uploads while it answers the first requests.
    #expect(
      try eventually {
        _ = try server.ask("PUT", "/a.mov", [("If-Match", "*")], body: Self.photo)
        _ = try server.ask("PUT", "/a.mov", body: Self.photo)
        return waiting(server) == 0
      })
    #expect(server.folder.read("a.mov") == Self.photo)
  }

  /// The member has the same bytes, so that the group is complete without it.
  @Test func aMemberWithTheSameBytesCountsAsArrived() throws {
    let server = try TestServer()
    let film = try server.send("a.mov", Self.film, position: 2, of: 2)
    #expect(try server.ask("PUT", "/a.mov", body: Self.film).status == 201)
    #expect(try eventually { waiting(server) == 0 })
    #expect(try server.ask("HEAD", try #require(film["Location"]), [tus])["Upload-Offset"] == "70000")
    let photo = try server.send("a.jpg", Self.photo, position: 1, of: 2)
    #expect(photo["Upload-Outcome"] == nil)
    #expect(server.folder.read("a.jpg") == Self.photo)
  }

  @Test func aMemberOfAnotherNameStays() throws {
    let server = try TestServer()
    _ = try server.send("a.mov", Self.film, position: 2, of: 2)
    #expect(try server.ask("PUT", "/b.mov", body: Self.photo).status == 201)
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2).status == 201)
    #expect(server.folder.read("a.mov") == Self.film)
  }
}
