import BlobCrypto
import BlobHTTP
import BlobServer
import TestSupport
import Testing

/// Requests that need an ability which the store does not have.
struct StoreAbilityTests {
  /// Each is refused before its bytes come, with a line that says what cannot be done.
  @Test func whatTheStoreCannotDoIsRefused() throws {
    let server = try TestServer(abilities: StoreAbilities())
    server.folder.makeFolder("d")
    server.folder.write("d/x", [1, 2, 3])
    func refused(_ method: String, _ path: String, _ headers: [(String, String)] = [], _ what: String) throws {
      let answer = try server.ask(method, path, headers, body: method == "POST" ? [] : nil)
      #expect(answer.status == 501, "\(method) \(path)")
      #expect(String(decoding: answer.body, as: UTF8.self).contains(what), "\(method) \(path)")
    }
    try refused("GET", "/d/", [], "cannot list folders")
    try refused("GET", "/d/?archive=tar", [], "cannot make archives")
    let part = [tus, ("Upload-Concat", "partial"), ("Upload-Length", "3")]
    try refused("POST", "/", part, "cannot join parts")
    let final = [tus, ("Upload-Concat", "final;/.fullbore-upload/\(String(repeating: "a", count: 32))")]
    try refused("POST", "/", final, "cannot join parts")
    let digest = DigestField.text([.sha256: Digest.value(of: [1, 2], .sha256)])
    try refused("POST", "/y", [tus, ("Upload-Length", "2"), ("Repr-Digest", digest)], "cannot read an upload")
    #expect(try server.ask("GET", "/d/x").body == [1, 2, 3])
  }

  @Test func aFileIsReceivedWithoutFurtherAbilities() throws {
    let server = try TestServer(abilities: StoreAbilities())
    #expect(try server.ask("PUT", "/a", body: [1, 2]).status == 201)
    let upload = try server.create("b", length: 3)
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    #expect(try server.offset(upload) == 1)
    #expect(try server.patch(upload, at: 1, [2, 3]).status == 204)
    #expect(try server.ask("GET", "/b").body == [1, 2, 3])
    #expect(try server.ask("HEAD", "/b", [("Want-Repr-Digest", "sha-256=1")])["Repr-Digest"] == nil)
    let second = try server.create("c", length: 3)
    #expect(try server.ask("DELETE", second, [tus]).status == 204)
  }

  /// A client that sends a group all the same gets what it gets from a server that does not know groups.
  @Test func aStoreWithoutGroupsPublishesEachMemberByItself() throws {
    let server = try TestServer(abilities: StoreAbilities())
    #expect(try server.ask("OPTIONS", "/")["Fullbore-Group"] == nil)
    let answer = try server.ask("PUT", "/photo", [groupField(1, of: 3)], body: [1])
    #expect(answer.status == 201 && answer["Fullbore-Group"] == nil)
    let whole = [groupField(2, of: 3), ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1")]
    let client = try server.client()
    var film = try client.ask("PUT", "/film", whole, body: [2])
    while film.status == 104 { film = try client.answer() }
    #expect(film.status == 201)
    let notes = try server.send("notes", [3], position: 3, of: 3)
    #expect(notes.status == 201 && notes["Upload-Outcome"] == nil)
    #expect(["photo", "film", "notes"].map { server.folder.read($0) } == [[1], [2], [3]])
  }

  @Test func tusOffersToJoinPartsOnlyWhereTheStoreCan() throws {
    let (all, none) = (try TestServer(), try TestServer(abilities: StoreAbilities()))
    let extensions = try [all, none].map { try $0.ask("OPTIONS", "/")["Tus-Extension"] ?? "" }
    #expect(extensions[0].contains("concatenation") && !extensions[1].contains("concatenation"))
    #expect(extensions[1].contains("creation") && extensions[1].contains("checksum"))
  }
}
