import BlobServer
import Blobs
import Platform
import Synchronization
import Testing

/// The server's own folder, `.fullbore`, after another program has changed it.
struct StoreFolderTests {
  @Test func aRemovedStoreFolderIsCreatedAgain() throws {
    let server = try TestServer {
      $0.maxTotal = 1000
      $0.maxUnfinished = 1
    }
    let lost = try server.create("lost", length: 900)
    server.folder.removeOwnFolder()
    #expect(try server.ask("PUT", "/a", body: pattern(500)).status == 201)
    #expect(server.folder.read("a") == pattern(500))
    // Nothing of the lost upload is left: it has no reserved space and no place among the unfinished uploads.
    #expect(try [404, 410].contains(server.ask("HEAD", lost, [tus]).status))
    let upload = try server.create("b", length: 400)
    #expect(try server.patch(upload, at: 0, pattern(400)).status == 204)
    #expect(server.folder.read("b") == pattern(400))
    #expect(throws: ServerError.self, "the new folder is locked too") { try TestServer(over: server.folder) }
  }

  @Test func uploadsDuringTheLossOfTheStoreFolderMustBeSentAgain() throws {
    let server = try TestServer()
    let put = try server.client()
    try put.head("PUT", "/a", [("Content-Length", "10")])
    try put.send(pattern(5))
    let upload = try server.create("b", length: 10)
    let patch = try server.beginPatch(upload, at: 0, length: 10, pattern(5))
    #expect(try eventually { server.folder.sizeOfKept == 10 })
    server.folder.removeOwnFolder()
    try put.send(pattern(5))
    try patch.send(pattern(5))
    #expect(try put.answer().status == 500)
    #expect(try patch.answer().status == 410)
    #expect(try put.ask("PUT", "/a", body: pattern(10)).status == 201)
  }

  @Test func theErrorNamesAStoreFolderThatCannotBeCreatedAgain() throws {
    let server = try TestServer()
    server.folder.removeOwnFolder()
    server.folder.write(".fullbore", [1])
    for _ in 0..<2 {
      let answer = try server.ask("PUT", "/a", body: [1])
      #expect(answer.status == 500)
      #expect(answer.text.contains(".fullbore was removed"), "\(answer.text)")
    }
    server.folder.remove(".fullbore")
    #expect(try server.ask("PUT", "/a", body: [1]).status == 201)
  }

  func move(_ outer: TestFolder, _ name: BytePath, to other: TestFolder, _ newName: BytePath) {
    outer.path.appending(name).withCString { old in
      other.path.appending(newName).withCString { new in #expect(rename(old, new) == 0) }
    }
  }

  func delete(_ outer: TestFolder, _ name: BytePath) {
    guard let trash = try? TestFolder() else { return }
    move(outer, name, to: trash, name)
  }

  /// A disk that is mounted again, or a folder that was deleted and made again, or was moved away.
  @Test(arguments: [true, false]) func aFolderInItsPlaceIsServed(isMoved: Bool) throws {
    let outer = try TestFolder()
    let notices = Mutex<[String]>([])
    outer.makeFolder("served")
    let server = try TestServer(over: outer) {
      $0.folder = outer.path.appending("served")
      $0.maxTotal = 10_000
      $0.notice = { line in notices.withLock { $0.append(line) } }
    }
    #expect(try server.ask("PUT", "/a", body: pattern(5000)).status == 201)
    let put = try server.client()
    try put.head("PUT", "/b", [("Content-Length", "10")])
    try put.send(pattern(5))
    let lost = try server.create("lost", length: 900)
    #expect(try server.patch(lost, at: 0, pattern(400)).status == 204)
    if isMoved { move(outer, "served", to: outer, "old") } else { delete(outer, "served") }
    #expect(try eventually { notices.withLock { $0 }.count == 1 && (try? server.ask("GET", "/").status) != nil })
    outer.makeFolder("served")
    outer.write("served/c", pattern(2000))
    #expect(try eventually { notices.withLock { $0 }.count == 2 })
    #expect(notices.withLock { $0.last?.contains("is another folder now") == true })
    try put.send(pattern(5))
    #expect(try put.answer().status >= 500)
    #expect(try [404, 410].contains(server.patch(lost, at: 400, pattern(500)).status))
    #expect(try server.ask("GET", "/a").status == 404)
    #expect(try server.ask("GET", "/c").body == pattern(2000))
    // The quota is that of the new folder.
    #expect(try server.ask("PUT", "/d", body: pattern(7000)).status == 201)
    #expect(outer.read("served/d") == pattern(7000))
    #expect(try server.ask("PUT", "/e", body: pattern(1500)).status == 507)
    #expect(outer.read("old/a") == (isMoved ? pattern(5000) : nil) && outer.read("old/d") == nil)
    #expect(throws: ServerError.self, "the new folder is locked") {
      try TestServer(over: outer) { $0.folder = outer.path.appending("served") }
    }
  }

  @Test func aFolderInItsPlaceIsReadToo() throws {
    let outer = try TestFolder()
    outer.makeFolder("served")
    let server = try TestServer(over: outer) {
      $0.folder = outer.path.appending("served")
      $0.isReadOnly = true
    }
    delete(outer, "served")
    outer.makeFolder("served")
    outer.write("served/c", pattern(2000))
    #expect(try eventually { try server.ask("GET", "/c").body == pattern(2000) })
  }

  /// Opening a pipe blocks until its other end is opened.
  @Test func pipesInItKeepNothingWaiting() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    let ids = ["1", "2", "3", "4"].map { String(repeating: $0, count: 32) }
    let record = "fullbore upload 1\ntarget x\nexisting keep\nlength 3\nmetadata \n"
    folder.write(BytePath(".fullbore/\(ids[1]).info"), Array(record.utf8))
    for name in ["\(ids[0]).info", "\(ids[1]).data", "\(ids[2]).done", "\(ids[3]).join", "\(ids[3]).info"] {
      folder.makePipe(BytePath(".fullbore/\(name)"))
    }
    let server = try TestServer(over: folder)
    #expect(server.server.notices.count == 2, "\(server.server.notices)")
    #expect(try server.ask("PUT", "/a", body: [1]).status == 201)
    let url = "/.fullbore-upload/"
    for id in [ids[0], ids[2], ids[3]] { #expect(try server.ask("HEAD", url + id, [tus]).status == 404) }
    #expect(try server.patch(url + ids[1], at: 0, [1, 2, 3]).status == 410)
    #expect(folder.read("x") == nil)
  }
}

extension TestFolder {
  /// Removes what an operator might remove who takes the folder for left-overs.
  func removeOwnFolder(of folder: BytePath = ".") {
    let own = path.appending(folder).appending(".fullbore")
    for name in Self.names(own) { own.appending(name).withCString { _ = unlink($0) } }
    own.withCString { _ = rmdir($0) }
  }

  func makePipe(_ name: BytePath) { path.appending(name).withCString { _ = mkfifo($0, 0o600) } }
}
