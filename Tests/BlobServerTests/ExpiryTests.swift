import BlobHTTP
import BlobServer
import Blobs
import Platform
import Testing

/// Which old files the server removes, and which it keeps.
struct ExpiryTests {
  /// The periodic clean-up would remove the upload within a minute; a new upload that needs the space must not wait for
  /// it.
  @Test func roomIsMadeOfWhatHasExpired() throws {
    let server = try TestServer {
      $0.maxTotal = 1000
      $0.expire = .seconds(3600)
    }
    let old = try server.create("a", length: 900)
    for kind in ["data", "info"] { server.folder.age(kept(old, kind), seconds: 7200) }
    // The server may still hold the upload for the request that created it.
    #expect(try eventually { try server.ask("PUT", "/b", body: pattern(500)).status == 201 })
    #expect(try server.ask("HEAD", old, [tus]).status == 410)
    #expect(server.folder.kept.isEmpty)
    _ = try server.create("c", length: 400)
    let refused = try server.ask("PUT", "/d", body: pattern(200))
    #expect(refused.status == 507)
    #expect(refused.text.contains("400 are kept for unfinished uploads"), "\(refused.text)")
  }

  /// Its client may have been killed before it noted the URL, so that nobody ends the upload. A client that has noted it has
  /// sent no byte, and loses none.
  @Test func anUploadWithoutBytesExpiresAfterAnHour() throws {
    let folder = try TestFolder()
    var (empty, begun, part) = ("", "", "")
    do {
      let server = try TestServer(over: folder)
      empty = try server.create("empty", length: 3)
      begun = try server.create("begun", length: 3)
      #expect(try server.patch(begun, at: 0, [1]).status == 204)
      let head = [tus, ("Upload-Length", "3"), ("Upload-Concat", "partial")]
      part = try #require(try server.ask("POST", "/", head, body: [])["Location"])
      let told = try server.ask("HEAD", empty, [tus])["Upload-Expires"].flatMap { HTTPDate.seconds($0) }
      #expect((told ?? 0) - Int64(time(nil)) <= 3600)
    }
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: 3500) }
    do {
      let server = try TestServer(over: folder)
      #expect(try server.ask("HEAD", empty, [tus]).status == 200)
    }
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: 3700) }
    let server = try TestServer(over: folder)
    #expect(try eventually { server.folder.kept.count == 4 }, "\(server.folder.kept)")
    #expect(try [404, 410].contains(server.ask("HEAD", empty, [tus]).status))
    for upload in [begun, part] { #expect(try server.ask("HEAD", upload, [tus]).status == 200) }
  }

  /// A damaged record that names the upload as its own part is removed like others.
  @Test func aFinishedUploadThatNamesItselfExpires() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    let id = String(repeating: "1", count: 32)
    let record = """
      fullbore upload 2
      target x
      existing keep
      length 3
      metadata \n\
      concat final;/.fullbore-upload/\(id)
      end

      """
    folder.write(BytePath(".fullbore/\(id).done"), Array(record.utf8))
    folder.write(BytePath(".fullbore/\(id).join"), [])
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: 7200) }
    let server = try TestServer(over: folder) { $0.expire = .seconds(3600) }
    #expect(try eventually { server.folder.kept.isEmpty }, "\(server.folder.kept)")
  }

  /// Such times occur if the clock was wrong when the file was written.
  @Test func uploadsWithATimeInTheFutureExpireToo() throws {
    let folder = try TestFolder()
    do {
      let server = try TestServer(over: folder)
      _ = try server.create("unfinished", length: 3)
      let done = try server.create("done", length: 1)
      #expect(try server.patch(done, at: 0, [1]).status == 204)
    }
    #expect(folder.kept.count == 3)
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: -100_000) }
    let server = try TestServer(over: folder) { $0.expire = .milliseconds(200) }
    #expect(try eventually { server.folder.kept.isEmpty }, "\(server.folder.kept)")
  }

  /// The client's time is set just before the file is published: if the server is killed in between, the upload must
  /// not look expired.
  @Test func aCompleteUploadWithTheClientsTimeIsPublished() throws {
    let folder = try TestFolder()
    var upload = ""
    do { upload = try TestServer(over: folder).create("x", length: 3) }
    folder.write(kept(upload, "data"), [1, 2, 3])
    folder.age(kept(upload, "data"), seconds: 1_000_000_000)
    let server = try TestServer(over: folder)
    #expect(try eventually { server.folder.read("x") == [1, 2, 3] })
  }
}
