import BlobServer
import Blobs
import TestSupport
import Testing

/// What hostile or unlucky clients, and other programs, can do to groups of uploads.
struct GroupConflictTests {
  private static let photo = pattern(3000)
  private static let film = pattern(70_000)

  /// Two clients have chosen the same id: the files of one are not published with those of the other, and nothing is lost.
  @Test(arguments: [("b.jpg", 1, 2), ("a.mov", 2, 3), ("b.mov", 3, 3), ("a.jpg", 2, 2)])
  func anIDThatTwoClientsHaveChosenMixesNoFiles(_ name: String, _ position: Int, _ members: Int) throws {
    let server = try TestServer()
    let first = try server.send("a.jpg", Self.photo, position: 1, of: 2)
    #expect(first["Upload-Outcome"] == "waiting")
    let other = try server.send(name, Self.film, position: position, of: members)
    #expect(other.status == 409)
    #expect(other.text.contains("an id of its own"), "\(other.text)")
    let put = try server.ask("PUT", "/\(name)", [groupField(position, of: members)], body: Self.film)
    #expect(put.status == 409)
    #expect(server.folder.kept.filter { $0.hasSuffix(".data") }.count == 1)
    #expect(try server.ask("HEAD", try #require(first["Location"]), [tus])["Upload-Outcome"] == "waiting")
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2).status == 201)
    #expect(server.folder.read("a.jpg") == Self.photo)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// An upload begins before the other client's one has arrived.
  @Test func anIDThatIsTakenWhileAnUploadIsOnItsWay() throws {
    let server = try TestServer()
    let slow = try server.create("b.jpg", length: Self.photo.count, metadata: groupMetadata(1, of: 2))
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(try server.patch(slow, at: 0, Self.photo).status == 409)
    #expect(try server.ask("HEAD", slow, [tus]).status == 410)
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2).status == 201)
    #expect(server.folder.read("a.jpg") == Self.photo)
    #expect(server.folder.read("b.jpg") == nil)
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") })
  }

  @Test func aGroupOfAMillionMembersIsRefused() throws {
    let server = try TestServer()
    for position in [1, 1_000_000] {
      let answer = try server.send("a.jpg", Self.photo, position: position, of: 1_000_000)
      #expect(answer.status == 400)
      #expect(answer.text.contains("at most 16"), "\(answer.text)")
    }
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") })
  }

  /// A member whose bytes were damaged on their way is refused, and the others wait for it.
  @Test func aMemberWithTheWrongDigestKeepsTheOthersAway() throws {
    let server = try TestServer()
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2)["Upload-Outcome"] == "waiting")
    let digest = ("Content-Digest", "sha-256=:\(String(repeating: "A", count: 43))=:")
    let damaged = try server.ask("PUT", "/a.jpg", [groupField(1, of: 2), digest], body: Self.photo)
    #expect(damaged.status == 400)
    #expect(server.folder.read("a.mov") == nil)
    #expect(server.folder.read("a.jpg") == nil)
    #expect(server.folder.kept.filter { $0.hasSuffix(".data") }.count == 1)
    #expect(try server.ask("PUT", "/a.jpg", [groupField(1, of: 2)], body: Self.photo).status == 201)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  @Test func filesAreReplacedTogether() throws {
    let server = try TestServer()
    for name in ["a.jpg", "a.mov"] as [BytePath] { server.folder.write(name, pattern(10)) }
    let overwrite = ",overwrite \(base64("true"))"
    let film = try server.send("a.mov", Self.film, position: 2, of: 2, more: overwrite)
    #expect(film["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.mov") == pattern(10))
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2, more: overwrite).status == 201)
    #expect(server.folder.read("a.jpg") == Self.photo)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// A client that names no group takes the name of a member that waits.
  @Test func aClientWithoutGroupsMayTakeAName() throws {
    let server = try TestServer()
    let film = try server.send("a.mov", Self.film, position: 2, of: 2)
    #expect(try server.ask("PUT", "/a.mov", body: Self.photo).status == 201)
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.jpg") == nil)
    #expect(server.folder.read("a.mov") == Self.photo)
    #expect(try server.ask("HEAD", try #require(film["Location"]), [tus]).status == 410)
  }
}
