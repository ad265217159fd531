import BlobServer
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

/// `maxTotal` in comparison with the bytes on disk.
struct SpaceLimitTests {
  /// tus permits an upload to declare its length later; the space for it must exist then.
  @Test func aDeferredLengthTakesRoomOnceItIsGiven() throws {
    let server = try TestServer { $0.maxTotal = 1000 }
    let late = try server.create("a", length: nil)
    #expect(try server.patch(late, at: 0, [1], [("Upload-Length", "1001")]).status == 413)
    #expect(try server.patch(late, at: 0, [1], [("Upload-Length", "900")]).status == 204)
    #expect(try server.ask("PUT", "/b", body: pattern(101)).status == 507)
    #expect(try server.ask("DELETE", late, [tus]).status == 204)
    #expect(try server.ask("PUT", "/b", body: pattern(1000)).status == 201)
    #expect(try server.ask("PUT", "/c", body: [1]).status == 507)
  }

  /// A client that is told 507 stops after a few files, while 413 says that this file alone is too large.
  @Test func onlyAFileAboveTheLimitIsTooLarge() throws {
    let server = try TestServer { $0.maxTotal = 1000 }
    #expect(try server.ask("PUT", "/a", body: pattern(600)).status == 201)
    let full = try server.ask("PUT", "/b", body: pattern(500))
    #expect(full.status == 507 && full.text.contains("400 of 1000 are free"), "\(full.text)")
    let large = try server.ask("PUT", "/c", body: pattern(1001))
    #expect(large.status == 413 && large.text.contains("1000 bytes at most"), "\(large.text)")
    // The length of this upload is known only at its end.
    let client = try server.client()
    try client.head("PUT", "/d", [("Transfer-Encoding", "chunked")])
    try client.send(Array("1f4\r\n".utf8) + pattern(500) + Array("\r\n".utf8))
    #expect(try client.answer().status == 507)
  }

  /// The operator deletes files in the folder without using the server.
  @Test func roomThatTheOperatorMakesIsFound() throws {
    let server = try TestServer { $0.maxTotal = 1000 }
    #expect(try server.ask("PUT", "/a", body: pattern(600)).status == 201)
    #expect(try server.ask("PUT", "/d/b", body: pattern(300)).status == 201)
    let upload = try server.create("late", length: 100)
    server.folder.remove("a")
    #expect(try eventually { try server.ask("PUT", "/c", body: pattern(600)).status == 201 })
    // Space reserved for an unfinished upload still counts.
    #expect(try server.ask("PUT", "/e", body: [1]).status == 507)
    #expect(try server.patch(upload, at: 0, pattern(100)).status == 204)
    server.folder.remove("c")
    #expect(try eventually { try server.ask("PUT", "/e", body: pattern(600)).status == 201 })
    #expect(try server.ask("PUT", "/f", body: [1]).status == 507)
  }

  /// The measurement does not run until the test calls it, as if the tree took long to read.
  @Test func uploadsGetRetryAfterWhileTheFolderIsMeasured() throws {
    let folder = try TestFolder()
    folder.write("a", pattern(900))
    let store = try FileStore(folder.path, expire: .seconds(3600), maxTotal: 1000)
    defer { store.close() }
    let works = Mutex<[@Sendable () -> Void]>([])
    store.onShortage { work in works.withLock { $0.append(work) } }
    func begin(_ length: Int64) -> Int? {
      do throws(ServerError) {
        try store.begin(length: length).discard()
        return nil
      } catch {
        return error.status
      }
    }
    folder.remove("a")
    #expect([begin(1001), begin(1000), begin(1000), begin(100)] == [413, 507, 507, nil])
    let work = try #require(works.withLock { $0.count == 1 ? $0.first : nil }, "one measures at a time")
    work()
    #expect(begin(1000) == nil)
  }

  /// Deleting uploads releases exactly the space that they have taken.
  @Test func deletingGivesBackWhatWasTaken() throws {
    let server = try TestServer { $0.maxTotal = 1 << 20 }
    #expect(try server.ask("PUT", "/full", body: pattern(1 << 20)).status == 201)
    for _ in 1...16 {
      let upload = try server.create("a", length: nil)
      let more = try server.patch(upload, at: 0, [], [("Upload-Length", "1048576")])
      #expect(more.status == 507)
      #expect(try server.ask("DELETE", upload, [tus]).status == 204)
    }
    #expect(try server.ask("PUT", "/b", body: [1]).status == 507)
  }

  @Test func anIETFUploadWithoutALengthTakesRoom() throws {
    let server = try TestServer { $0.maxTotal = 1000 }
    let head = [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0")]
    let client = try server.client()
    try client.head("POST", "/a", head + [("Content-Length", "600")])
    _ = try client.readHead()
    try client.send(pattern(600))
    let upload = try #require(try client.answer()["Location"])
    let patch = head + [("Upload-Offset", "600"), ("Content-Type", "application/partial-upload")]
    #expect(try server.ask("PATCH", upload, patch + [("Upload-Length", "1001")], body: []).status == 413)
    #expect(try server.ask("PATCH", upload, patch + [("Upload-Length", "1000")], body: []).status == 204)
    #expect(try server.ask("PUT", "/b", body: [1]).status == 507)
    #expect(try server.ask("DELETE", upload, [head[0]]).status == 204)
    #expect(try server.ask("PUT", "/b", body: pattern(1000)).status == 201)
  }

  @Test func replacingAtOnceKeepsTheSum() throws {
    let server = try TestServer {
      $0.maxTotal = 100_000
      $0.allowsDelete = true
    }
    #expect(try server.ask("PUT", "/same", body: [1]).status == 201)
    for round in 0..<5 {
      let clients = try (0..<8).map { _ in try server.client() }
      for (number, client) in clients.enumerated() {
        let size = 1000 * (number + 1)
        try client.head("PUT", "/same", [("If-Match", "*"), ("Content-Length", "\(size)")])
        try client.send(pattern(size, seed: round))
      }
      let answers = try clients.map { try $0.answer().status }
      // A request is refused if another one has replaced the file since it began.
      #expect(answers.allSatisfy { [204, 409].contains($0) } && answers.contains(204), "\(answers)")
      try checkRoom(server, limit: 100_000, "round \(round)")
    }
  }

  /// Uploads of all kinds, interrupted, declared late, replaced and deleted in random order.
  @Test(arguments: [1, 2, 3, 4] as [UInt64]) func theSumOnTheDiskIsTheSumThatCounts(seed: UInt64) throws {
    let limit = 200_000
    var random = SplitMix64(seed: seed)
    let folder = try TestFolder()
    var server: TestServer? = try open(folder, limit)
    var tusUploads: [(url: String, offset: Int, length: Int?)] = []
    var drafts: [(url: String, offset: Int)] = []
    for step in 0..<70 {
      let here = try #require(server)
      let size = Int.random(in: 0...60_000, using: &random)
      let name = "/file\(Int.random(in: 0..<6, using: &random))"
      let what = Int.random(in: 0..<12, using: &random)
      let condition = folder.read(BytePath(String(name.dropFirst()))) == nil ? [] : [("If-Match", "*")]
      switch what {
      case 0: _ = try here.ask("PUT", name, condition, body: pattern(size, seed: step))
      case 1, 2:
        let client = try here.client()
        try client.head("PUT", name, condition + [("Transfer-Encoding", "chunked")])
        try? client.send(Array("\(String(max(size, 1), radix: 16))\r\n".utf8) + pattern(max(size, 1), seed: step))
        if what == 1 {
          try? client.send(Array("\r\n0\r\n\r\n".utf8))
          _ = try client.answer()
        }
      case 3:
        let client = try here.client()
        try client.head("PUT", name, condition + [("Content-Length", "\(size + 1)")])
        try? client.send(pattern(size, seed: step))
      case 4, 5:
        let length = what == 4 ? nil : size
        let told = length.map { ("Upload-Length", "\($0)") } ?? ("Upload-Defer-Length", "1")
        let metadata = ("Upload-Metadata", "filename \(base64("t\(step)"))")
        let answer = try here.ask("POST", "/", [tus, told, metadata], body: [])
        if answer.status == 201 { tusUploads.append((try #require(answer["Location"]), 0, length)) }
      case 6, 7:
        guard let index = tusUploads.indices.randomElement(using: &random) else { continue }
        var upload = tusUploads[index]
        var more: [(String, String)] = []
        if upload.length == nil, what == 7 {
          upload.length = upload.offset + size
          more = [("Upload-Length", "\(upload.offset + size)")]
        }
        let rest = (upload.length ?? .max) - upload.offset
        let count = min(rest, Int.random(in: 0...40_000, using: &random))
        let answer = try here.patch(upload.url, at: upload.offset, pattern(count, seed: step), more)
        if answer.status != 204, try here.ask("HEAD", upload.url, [tus]).status != 200 {
          tusUploads.remove(at: index)
        } else {
          let asked = try here.ask("HEAD", upload.url, [tus])
          tusUploads[index].offset = asked["Upload-Offset"].flatMap { Int($0) } ?? 0
          tusUploads[index].length = asked["Upload-Length"].flatMap { Int($0) }
        }
      case 8:
        guard let index = tusUploads.indices.randomElement(using: &random) else { continue }
        _ = try here.ask("DELETE", tusUploads.remove(at: index).url, [tus])
      case 9:
        let head = [("Upload-Complete", "?0"), ("Upload-Length", "\(size)")]
        let answer = try here.ask("POST", name, Bool.random(using: &random) ? head : [head[0]], body: [])
        if answer.status == 201 { drafts.append((try #require(answer["Location"]), 0)) }
      case 10:
        guard let index = drafts.indices.randomElement(using: &random) else { continue }
        let isLast = Bool.random(using: &random)
        let head = [
          ("Upload-Complete", isLast ? "?1" : "?0"), ("Upload-Offset", "\(drafts[index].offset)"),
          ("Content-Type", "application/partial-upload"),
        ]
        let answer = try here.ask("PATCH", drafts[index].url, head, body: pattern(size, seed: step))
        if let offset = try here.ask("HEAD", drafts[index].url)["Upload-Offset"].flatMap({ Int($0) }), !isLast {
          drafts[index].offset = offset
        } else if isLast || answer.status != 204 {
          drafts.remove(at: index)
        }
      default:
        if Bool.random(using: &random) {
          _ = try here.ask("DELETE", name)
        } else {
          here.server.stop(grace: .zero)
          server = try open(folder, limit)
        }
      }
      #expect(try #require(server).folder.sizeOfAll <= limit, "seed \(seed), step \(step)")
      if step % 7 == 6 { try checkRoom(#require(server), limit: limit, "seed \(seed), step \(step)") }
    }
  }

  private func open(_ folder: TestFolder, _ limit: Int) throws -> TestServer {
    try TestServer(over: folder) {
      $0.maxTotal = Int64(limit)
      $0.allowsDelete = true
    }
  }

  /// The free space can be filled completely, but not by a byte more.
  private func checkRoom(_ server: TestServer, limit: Int, _ place: String) throws {
    // The bytes of interrupted requests are removed a little later.
    let isExact = try eventually {
      _ = try server.ask("DELETE", "/probe")
      let free = limit - server.folder.roomTaken
      guard free >= 0, case let more = try server.ask("PUT", "/probe", body: pattern(free + 1)),
        more.status == (free < limit ? 507 : 413)
      else { return false }
      let status = try server.ask("PUT", "/probe", body: pattern(free)).status
      _ = try server.ask("DELETE", "/probe")
      return status == 201
    }
    #expect(isExact, "\(place): the disk has \(server.folder.roomTaken) of \(limit)")
  }
}

extension TestFolder {
  /// Bytes of all published files in the top folder and of all unfinished uploads.
  var sizeOfAll: Int {
    Int(sizeOfKept) + TestFolder.names(path).filter { $0 != ".fullbore" }.reduce(0) { $0 + size($1) }
  }

  /// `sizeOfAll` with the space reserved for unfinished uploads.
  var roomTaken: Int {
    kept.filter { $0.hasSuffix(".data") }.reduce(sizeOfAll) { sum, name in
      let record = read(BytePath(".fullbore/\(name.dropLast(5)).info")) ?? []
      let line = String(decoding: record, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("length ") }
      let promised = line.flatMap { Int($0.dropFirst(7)) } ?? 0
      return sum + max(0, promised - size(BytePath(".fullbore/\(name)")))
    }
  }

  private func size(_ name: BytePath) -> Int {
    var status = stat()
    _ = path.appending(name).withCString { stat($0, &status) }
    return Int(status.st_size)
  }
}
