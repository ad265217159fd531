import BlobServer
import Blobs
import Synchronization
import TestSupport
import Testing

/// Uploads that belong together, such as the picture and the film of one photo.
struct GroupTests {
  private static let photo = pattern(3000)
  private static let film = pattern(70_000)
  private static let notes = pattern(200)

  @Test func membersOfTusAppearTogether() throws {
    let server = try TestServer()
    let film = try server.send("IMG_1.MOV", Self.film, position: 2, of: 3)
    let notes = try server.send("IMG_1.xmp", Self.notes, position: 3, of: 3)
    for answer in [film, notes] {
      #expect(answer.status == 201)
      #expect(answer["Upload-Outcome"] == "waiting")
      #expect(answer["Fullbore-Group"] == nil)
    }
    #expect(server.folder.read("IMG_1.MOV") == nil)
    #expect(try server.ask("GET", "/IMG_1.MOV").status == 404)
    let state = try server.ask("HEAD", try #require(film["Location"]), [tus])
    #expect(state["Upload-Offset"] == "70000")
    #expect(state["Upload-Outcome"] == "waiting")
    #expect(state["Content-Location"] == nil)
    let photo = try server.send("IMG_1.HEIC", Self.photo, position: 1, of: 3)
    #expect(photo.status == 201)
    #expect(photo["Upload-Outcome"] == nil)
    #expect(photo["Fullbore-Group"]?.hasPrefix("\"shot\"") == true)
    #expect(server.folder.read("IMG_1.HEIC") == Self.photo)
    #expect(server.folder.read("IMG_1.MOV") == Self.film)
    #expect(server.folder.read("IMG_1.xmp") == Self.notes)
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") || $0.hasSuffix(".group") })
    let finished = try server.ask("HEAD", try #require(film["Location"]), [tus])
    #expect(finished["Content-Location"]?.hasSuffix("IMG_1.MOV") == true)
    #expect(finished["Upload-Outcome"] == nil)
  }

  @Test func membersOfPutAppearTogether() throws {
    let server = try TestServer()
    func put(_ name: String, _ bytes: [UInt8], _ position: Int) throws -> RawHTTPClient.Answer {
      try server.ask("PUT", "/\(name)", [groupField(position, of: 2)], body: bytes)
    }
    let film = try put("a.mov", Self.film, 2)
    #expect(film.status == 202)
    #expect(film["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.mov") == nil)
    let photo = try put("a.jpg", Self.photo, 1)
    #expect(photo.status == 201)
    #expect(photo["ETag"] != nil)
    #expect(server.folder.read("a.mov") == Self.film)
    #expect(server.folder.read("a.jpg") == Self.photo)
  }

  @Test func membersOfResumableUploadsAppearTogether() throws {
    let server = try TestServer()
    func post(_ name: String, _ bytes: [UInt8], _ position: Int) throws -> RawHTTPClient.Answer {
      let client = try server.client()
      try client.head(
        "PUT", "/\(name)",
        [
          groupField(position, of: 2), ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1"),
          ("Content-Length", "\(bytes.count)"),
        ])
      try client.send(bytes)
      var answer = try client.answer()
      while answer.status == 104 { answer = try client.answer() }
      return answer
    }
    let film = try post("a.mov", Self.film, 2)
    #expect(film.status == 202)
    #expect(film["Upload-Outcome"] == "waiting")
    let state = try server.ask(
      "HEAD", try #require(film["Location"]), [("Upload-Draft-Interop-Version", "8")])
    #expect(state["Upload-Complete"] == "?1")
    #expect(state["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.mov") == nil)
    #expect(try post("a.jpg", Self.photo, 1).status == 201)
    #expect(server.folder.read("a.mov") == Self.film)
    #expect(server.folder.read("a.jpg") == Self.photo)
  }

  @Test func largeMembersInPartsAppearTogether() throws {
    let server = try TestServer()
    let film = try server.create("a.mov", length: Self.film.count, metadata: groupMetadata(2, of: 2))
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(try server.patch(film, at: 0, Array(Self.film.prefix(100)))["Upload-Outcome"] == nil)
    #expect(server.folder.read("a.jpg") == nil)
    #expect(try server.patch(film, at: 100, Array(Self.film.dropFirst(100))).status == 204)
    #expect(server.folder.read("a.jpg") == Self.photo)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// Another photo has the name: nothing of this one appears, and what waits stays.
  @Test func aTakenNameKeepsTheOthersAway() throws {
    let server = try TestServer()
    server.folder.write("a.jpg", pattern(10))
    let film = try server.send("a.mov", Self.film, position: 2, of: 2)
    #expect(film["Upload-Outcome"] == "waiting")
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2).status == 409)
    #expect(server.folder.read("a.mov") == nil)
    #expect(try server.offset(try #require(film["Location"])) == Self.film.count)
    // The photo comes under another name.
    #expect(try server.send("a-2.jpg", Self.photo, position: 1, of: 2).status == 201)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// The name is taken while the member waits.
  @Test func aNameThatIsTakenMeanwhileKeepsAllAway() throws {
    let server = try TestServer()
    let photo = try server.send("a.jpg", Self.photo, position: 1, of: 2)
    server.folder.write("a.jpg", pattern(10))
    let film = try server.send("a.mov", Self.film, position: 2, of: 2)
    #expect(film["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.mov") == nil)
    #expect(try server.ask("HEAD", try #require(photo["Location"]), [tus]).status == 410)
  }

  @Test func aMemberThatWasThereCounts() throws {
    let server = try TestServer()
    server.folder.write("a.jpg", Self.photo)
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2)["Upload-Outcome"] == "waiting")
    let photo = try server.send("a.jpg", Self.photo, position: 1, of: 2)
    #expect(photo["Upload-Outcome"] == "unchanged")
    #expect(photo["Fullbore-Group"] != nil)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// It waits for nothing, and leaves nothing that would have to expire.
  @Test(arguments: [false, true]) func aMemberThatWasThereDoesNotWait(_ isPut: Bool) throws {
    let server = try TestServer()
    for name in ["a.jpg", "a.xmp"] as [BytePath] { server.folder.write(name, Self.photo) }
    for (name, position) in [("a.jpg", 1), ("a.xmp", 3)] {
      let answer =
        isPut
        ? try server.ask("PUT", "/\(name)", [groupField(position, of: 3)], body: Self.photo)
        : try server.send(name, Self.photo, position: position, of: 3)
      #expect(answer["Upload-Outcome"] == "unchanged")
      #expect(answer["Fullbore-Group"] == nil)
    }
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") })
    let film = try server.send("a.mov", Self.film, position: 2, of: 3)
    #expect(film["Fullbore-Group"] != nil)
    #expect(server.folder.read("a.mov") == Self.film)
  }

  /// Somebody else has stored the same file under its name since it began to wait.
  @Test func aMemberThatIsThereMeanwhileWaitsNoMore() throws {
    let folder = try TestFolder()
    let film = try TestServer(over: folder).send("a.mov", Self.film, position: 2, of: 2)
    #expect(film["Upload-Outcome"] == "waiting")
    folder.write("a.mov", Self.film)
    let server = try TestServer(over: folder)
    #expect(try eventually { !folder.kept.contains { $0.hasSuffix(".data") } })
    #expect(try server.offset(try #require(film["Location"])) == Self.film.count)
  }

  /// The response was lost, and the client sends the member again.
  @Test func aMemberThatComesAgainTakesThePlaceOfTheFirst() throws {
    let server = try TestServer()
    let first = try server.send("a.jpg", Self.photo, position: 1, of: 2)
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(server.folder.kept.filter { $0.hasSuffix(".data") }.count == 1)
    #expect(try server.ask("HEAD", try #require(first["Location"]), [tus]).status == 410)
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2).status == 201)
    #expect(server.folder.read("a.jpg") == Self.photo)
  }

  /// The response to the last member was lost: the members that come again wait for nothing.
  @Test func aMemberThatComesAgainAfterItsGroupDoesNotWait() throws {
    let server = try TestServer()
    func put(_ name: String, _ bytes: [UInt8], _ position: Int) throws -> RawHTTPClient.Answer {
      try server.ask("PUT", "/\(name)", [groupField(position, of: 2)], body: bytes)
    }
    #expect(try put("a.mov", Self.film, 2).status == 202)
    #expect(try put("a.jpg", Self.photo, 1).status == 201)
    let again = try put("a.mov", Self.film, 2)
    #expect(again.status == 204)
    #expect(again["Upload-Outcome"] == "unchanged")
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") })
    #expect(try put("a.mov", Self.notes, 2).status == 409)
    // The files were moved away: the members wait for each other again.
    for name in ["a.mov", "a.jpg"] as [BytePath] { server.folder.remove(name) }
    #expect(try put("a.jpg", Self.photo, 1).status == 202)
    #expect(try put("a.mov", Self.film, 2).status == 201)
    // A member with a new name waits as before.
    #expect(try put("b.mov", Self.film, 2).status == 202)
  }

  /// A client that comes later has other members left, or one only.
  @Test func anUploadThatWaitsCanBePutIntoAnotherGroup() throws {
    let server = try TestServer()
    let film = try #require(try server.send("a.mov", Self.film, position: 2, of: 2)["Location"])
    let moved = try server.patch(film, at: Self.film.count, [], [groupField(1, of: 1, id: "other")])
    #expect(moved.status == 204)
    #expect(moved["Upload-Outcome"] == nil)
    #expect(server.folder.read("a.mov") == Self.film)
    // The first group has lost it.
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
  }

  @Test func groupsWithOtherIdsDoNotMeet() throws {
    let server = try TestServer()
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2, id: "one")["Upload-Outcome"] == "waiting")
    #expect(try server.send("a.mov", Self.film, position: 2, of: 2, id: "two")["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.jpg") == nil)
  }

  @Test func whatWaitsIsGoneWhenItIsTerminated() throws {
    let server = try TestServer()
    let film = try #require(try server.send("a.mov", Self.film, position: 2, of: 2)["Location"])
    #expect(try server.ask("DELETE", film, [tus]).status == 204)
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.jpg") == nil)
  }

  @Test func whatWaitsExpires() throws {
    let server = try TestServer { $0.expire = .milliseconds(300) }
    let film = try #require(try server.send("a.mov", Self.film, position: 2, of: 2)["Location"])
    #expect(
      try eventually {
        try [404, 410].contains(server.ask("HEAD", film, [tus]).status)
          && !server.folder.kept.contains { $0.hasSuffix(".data") }
      })
    #expect(try server.send("a.jpg", Self.photo, position: 1, of: 2)["Upload-Outcome"] == "waiting")
    #expect(server.folder.read("a.mov") == nil)
  }

  /// What waits counts like all that is not finished.
  @Test func whatWaitsCountsAsUnfinished() throws {
    let server = try TestServer { $0.maxUnfinished = 2 }
    for number in 1...2 {
      let answer = try server.ask("PUT", "/\(number).jpg", [groupField(1, of: 2, id: "\(number)")], body: Self.photo)
      #expect(answer.status == 202)
    }
    #expect(try server.ask("PUT", "/3.jpg", [groupField(1, of: 2, id: "3")], body: Self.photo).status == 503)
    #expect(server.folder.kept.filter { $0.hasSuffix(".data") }.count == 2)
    #expect(try server.ask("PUT", "/alone.jpg", body: Self.photo).status == 201)
  }

  /// A client that never sends the other members takes up room as an unfinished upload does, until it expires.
  @Test func whatWaitsCountsForTheLimitOfAllBytes() throws {
    let server = try TestServer { ($0.maxTotal, $0.expire) = (5000, .seconds(1)) }
    #expect(try server.ask("PUT", "/a.jpg", [groupField(1, of: 2)], body: Self.photo).status == 202)
    #expect(try server.ask("PUT", "/alone.jpg", body: Self.photo).status == 507)
    #expect(try eventually { try server.ask("PUT", "/alone.jpg", body: Self.photo).status == 201 })
    #expect(server.folder.read("a.jpg") == nil)
    #expect(!server.folder.kept.contains { $0.hasSuffix(".data") })
  }

  @Test(arguments: [
    "shot", "\"\"; members=2; position=1", "\"a b\"; members=2; position=1", "\"a\"; members=17; position=1",
    "\"a\"; members=1000000; position=1", "\"a\"; members=99999999999999999999; position=1",
    "\"a\"; members=2; position=3", "\"a\"; members=0; position=0", "\"a\"", "\"a\"; members=2",
  ])
  func groupsThatMakeNoSenseAreRefused(_ field: String) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/a", [("Fullbore-Group", field)], body: [1]).status == 400)
    #expect(server.folder.read("a") == nil)
  }

  @Test func groupsAreOffered() throws {
    #expect(try TestServer().ask("OPTIONS", "/")["Fullbore-Group"] == "members=16")
    let server = try TestServer { $0.isReadOnly = true }
    #expect(try server.ask("OPTIONS", "/")["Fullbore-Group"] == nil)
  }

  /// A program that reads the folder all the time never finds a film or a sidecar without its photo.
  @Test func aReaderNeverMeetsAFilmWithoutItsPhoto() throws {
    let server = try TestServer()
    let shots = 100
    let isDone = Atomic(false)
    let orphans = Mutex<Set<String>>([])
    let folder = server.folder
    let reader = Background {
      while !isDone.load(ordering: .relaxed) {
        // A photo that appears while the folder is read may be missed, so photos are read last.
        let others = TestFolder.names(folder.path).map(\.description).filter {
          !$0.hasSuffix(".jpg") && $0 != ".fullbore"
        }
        let photos = Set(TestFolder.names(folder.path).map(\.description))
        for name in others where !photos.contains(name.prefix(4) + ".jpg") { _ = orphans.withLock { $0.insert(name) } }
      }
    }
    for shot in 0..<shots {
      let name = String(1000 + shot)
      for (position, ending) in [(3, "xmp"), (1, "jpg"), (2, "mov")] {
        _ = try server.send("\(name).\(ending)", Self.notes, position: position, of: 3, id: name)
      }
    }
    isDone.store(true, ordering: .relaxed)
    #expect(reader.value() != nil)
    #expect(orphans.withLock { $0 } == [])
    #expect(TestFolder.names(folder.path).count == 3 * shots + 1)
  }
}
