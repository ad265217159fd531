import BlobServer
import Blobs
import Testing

struct TusRecoveryTests {
  /// Each combining character is one Swift `Character` with the space, comma or line break before it.
  @Test(arguments: ["\u{301}", "\u{301}key", "\u{200D}x", "\u{FE0F}"])
  func metadataOfCombiningCharactersSurvives(_ name: String) throws {
    let folder = try TestFolder()
    let metadata = "\(name) \(base64("value")),filename \(base64("x")),\(name)2"
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      let head = [tus, ("Upload-Length", "3"), ("Upload-Metadata", metadata)]
      upload = try #require(try server.ask("POST", "/", head, body: [])["Location"])
      #expect(try server.patch(upload, at: 0, [1]).status == 204)
    }
    let server = try TestServer(over: folder)
    #expect(server.server.notices.isEmpty)
    let asked = try server.ask("HEAD", upload, [tus])
    #expect(asked.status == 200)
    #expect(asked["Upload-Metadata"] == metadata)
    #expect(try server.patch(upload, at: 1, [2, 3]).status == 204)
    #expect(folder.read("x") == [1, 2, 3])
  }

  @Test func aCutPatchKeepsEveryByte() throws {
    let server = try TestServer()
    let bytes = pattern(2_000_000)
    let upload = try server.create("x", length: bytes.count)
    do {
      let client = try server.beginPatch(upload, at: 0, length: bytes.count, Array(bytes.prefix(1_234_567)))
      client.finishSending()
      #expect(client.isClosedByServer())
    }
    #expect(try server.offset(upload) == 1_234_567)
    #expect(try server.patch(upload, at: 1_234_567, Array(bytes.dropFirst(1_234_567))).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  /// After a power failure, a file system may leave a file with its size, but not with all of its data.
  @Test func anUploadGoesOnWhereItsBytesAreMissing() throws {
    let folder = try TestFolder()
    let bytes = pattern(300_000)
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: bytes.count)
      #expect(try server.patch(upload, at: 0, Array(bytes.prefix(200_000))).status == 204)
    }
    try folder.makeHoleInKept(at: 64 << 10, length: 32 << 10)
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload) == 64 << 10)
    #expect(try server.patch(upload, at: 64 << 10, Array(bytes.dropFirst(64 << 10))).status == 204)
    #expect(folder.read("x") == bytes)
  }

  @Test func unfinishedUploadsOutliveTheServer() throws {
    let folder = try TestFolder()
    let bytes = pattern(300_000)
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: bytes.count, in: "/sub/")
      #expect(try server.patch(upload, at: 0, Array(bytes.prefix(100_000))).status == 204)
      let client = try server.beginPatch(upload, at: 100_000, length: 200_000, Array(bytes[100_000..<150_000]))
      #expect(try eventually { folder.sizeOfKept == 150_000 })
      server.server.stop(grace: .zero)
      #expect(client.isClosedByServer())
    }
    let server = try TestServer(over: folder)
    let answer = try server.ask("HEAD", upload, [tus])
    #expect(answer["Upload-Offset"] == "150000")
    #expect(answer["Upload-Length"] == "300000")
    #expect(try server.patch(upload, at: 150_000, Array(bytes.dropFirst(150_000))).status == 204)
    #expect(folder.read("sub/x") == bytes)
  }

  @Test func aFinishedUploadIsRememberedOverARestart() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: 3)
      #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 204)
      #expect(try server.patch(upload, at: 3, []).status == 204)
    }
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload) == 3)
  }

  // MARK: States that a kill can leave

  @Test func killedBeforePublishingIsPublishedAtTheNextStart() throws {
    let folder = try TestFolder()
    let upload = try killed(folder, with: [1, 2])
    folder.write(BytePath(".fullbore/\(upload.id).data"), [1, 2, 3])
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload.path) == 3)
    #expect(folder.read("x") == [1, 2, 3])
  }

  @Test func killedAfterPublishingIsFinished() throws {
    let folder = try TestFolder()
    let upload = try killed(folder, with: [1, 2])
    // A file that the test created anew could have another inode, and would then be a file of somebody else.
    folder.write(BytePath(".fullbore/\(upload.id).data"), [1, 2, 3])
    folder.rename(BytePath(".fullbore/\(upload.id).data"), to: "x")
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload.path) == 3)
    #expect(folder.kept == ["\(upload.id).done"])
  }

  @Test func bytesWithoutATargetAreGone() throws {
    let folder = try TestFolder()
    let upload = try killed(folder, with: [1, 2])
    folder.remove(BytePath(".fullbore/\(upload.id).data"))
    let server = try TestServer(over: folder)
    #expect(try server.ask("HEAD", upload.path, [tus]).status == 410)
  }

  @Test func aFileShortenedByAPowerCutIsTheTruth() throws {
    let folder = try TestFolder()
    let upload = try killed(folder, with: [1, 2])
    folder.write(BytePath(".fullbore/\(upload.id).data"), [1])
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload.path) == 1)
    #expect(try server.patch(upload.path, at: 1, [2, 3]).status == 204)
    #expect(folder.read("x") == [1, 2, 3])
  }

  @Test func leftOversAreClearedAtStart() throws {
    let folder = try TestFolder()
    do { _ = try TestServer(over: folder) }
    folder.write(".fullbore/0123456789abcdef0123456789abcdef.data", [1])
    folder.write(".fullbore/0123456789abcdef0123456789abcdef.draft", [1])
    folder.write(".fullbore/11111111111111111111111111111111.data", [1])
    folder.write(".fullbore/11111111111111111111111111111111.info", Array("half a rec".utf8))
    let server = try TestServer(over: folder)
    #expect(try server.ask("HEAD", "/.fullbore-upload/11111111111111111111111111111111", [tus]).status == 404)
    #expect(!folder.kept.contains { $0.hasPrefix("0123") })
  }

  /// An upload of three bytes to `x`, which has received `bytes` when the server is stopped.
  private func killed(_ folder: TestFolder, with bytes: [UInt8]) throws -> (path: String, id: String) {
    let server = try TestServer(over: folder)
    let upload = try server.create("x", length: 3)
    #expect(try server.patch(upload, at: 0, bytes).status == 204)
    return (upload, String(upload.split(separator: "/").last!))
  }

  // MARK: One writer at a time

  @Test func askingForTheOffsetEndsTheOlderWriter() throws {
    let server = try TestServer()
    let bytes = pattern(1000)
    let upload = try server.create("x", length: 1000)
    let dead = try server.beginPatch(upload, at: 0, length: 1000, Array(bytes.prefix(300)))
    #expect(try eventually { server.folder.sizeOfKept == 300 })
    #expect(try server.offset(upload) == 300)
    try? dead.send(Array(bytes[300..<400]))  // is rejected, or fails to be sent
    #expect(try dead.answer().status == 409)
    #expect(try server.offset(upload) == 300)
    #expect(try server.patch(upload, at: 300, Array(bytes.dropFirst(300))).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aNewerPatchTakesOver() throws {
    let server = try TestServer()
    let bytes = pattern(1000)
    let upload = try server.create("x", length: 1000)
    let old = try server.beginPatch(upload, at: 0, length: 1000, Array(bytes.prefix(300)))
    #expect(try eventually { server.folder.sizeOfKept == 300 })
    #expect(try server.patch(upload, at: 200, [0]).status == 409)
    let new = try server.beginPatch(upload, at: 300, length: 700, Array(bytes[300..<600]))
    #expect(try eventually { server.folder.sizeOfKept == 600 })
    try? old.send([0, 0, 0])  // is rejected, or fails to be sent
    #expect(try old.answer().status == 409)
    try new.send(Array(bytes[600...]))
    #expect(try new.answer().status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func terminationEndsTheWriter() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 1000)
    let old = try server.beginPatch(upload, at: 0, length: 1000, pattern(300))
    #expect(try eventually { server.folder.sizeOfKept == 300 })
    #expect(try server.ask("DELETE", upload, [tus]).status == 204)
    try? old.send([1])  // is rejected, or fails to be sent
    #expect(try old.answer().status == 410, "it is gone, and nobody else's")
    #expect(server.folder.kept.isEmpty)
  }

  @Test func manyCutsAtRandomBytesStillGiveTheSameFile() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = Seeded(seed)
    let server = try TestServer()
    let bytes = pattern(3_000_000)
    let upload = try server.create("x", length: bytes.count)
    var offset = 0
    // Bytes of an older request may be received after a later request has asked; they are stored at their own offset.
    var sent = 0
    while offset < bytes.count {
      let end = min(bytes.count, offset + Int.random(in: 1...600_000, using: &random))
      sent = max(sent, end)
      _ = try server.beginPatch(upload, at: offset, length: bytes.count - offset, Array(bytes[offset..<end]))
      let next = try server.offset(upload)
      #expect((offset...sent).contains(next), "seed \(seed)")
      offset = next
    }
    #expect(server.folder.read("x") == bytes, "seed \(seed)")
  }

  // MARK: Expiry

  @Test func anExpiredUploadIsDeletedAndAnswered410() throws {
    let server = try TestServer { $0.expire = .seconds(2) }
    let upload = try server.create("x", length: 3)
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(try server.ask("HEAD", upload, [tus]).status == 410)
    #expect(try server.patch(upload, at: 1, [2]).status == 410)
    let done = try server.create("y", length: 1)
    #expect(try server.patch(done, at: 0, [1]).status == 204)
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("y") == [1])
  }

  @Test func anUploadThatExpiredWhileTheServerWasDownIsDeleted() throws {
    let folder = try TestFolder()
    let upload = try killed(folder, with: [1])
    for kind in ["data", "info"] { folder.age(BytePath(".fullbore/\(upload.id).\(kind)"), seconds: 7200) }
    let server = try TestServer(over: folder) { $0.expire = .seconds(3600) }
    #expect([404, 410].contains(try server.ask("HEAD", upload.path, [tus]).status))
    #expect(try eventually { folder.kept.isEmpty })
  }

  /// A symbolic link or a file has replaced the folder when the last byte arrives.
  @Test(arguments: [true, false]) func anUploadThatCannotBePublishedStaysResumable(isLink: Bool) throws {
    let server = try TestServer()
    let upload = try server.create("d/a", length: 10)
    #expect(try server.patch(upload, at: 0, pattern(5)).status == 204)
    if isLink { server.folder.link("d", to: "/nowhere") } else { server.folder.write("d", [1]) }
    let kept = server.folder.kept
    #expect(try server.patch(upload, at: 5, Array(pattern(10)[5...])).status == 500)
    #expect(try server.ask("HEAD", upload, [tus]).status == 500)
    #expect(try server.patch(upload, at: 10, []).status == 500)
    #expect(server.folder.kept == kept)
    server.folder.remove("d")
    #expect(try server.patch(upload, at: 10, []).status == 204)
    #expect(server.folder.read("d/a") == pattern(10))
    #expect(try server.offset(upload) == 10)
  }

  @Test func anUploadThatCouldNotBePublishedCanBeDeleted() throws {
    let server = try TestServer()
    let upload = try server.create("d/a", length: 5)
    server.folder.write("d", [1])
    #expect(try server.patch(upload, at: 0, pattern(5)).status == 500)
    #expect(try server.ask("DELETE", upload, [tus]).status == 204)
    #expect(try eventually { server.folder.kept.isEmpty })
  }
}

/// SplitMix64, so that a failed run can be repeated with its seed.
private struct Seeded: RandomNumberGenerator {
  var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
