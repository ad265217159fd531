import BlobServer
import Blobs
import TestSupport
import Testing

/// Creates each state that a kill can leave while a group is published, and starts the next server on it.
struct GroupKillTests {
  private static let names: [BytePath] = ["a.jpg", "a.mov", "a.xmp"]
  private static func bytes(_ index: Int) -> [UInt8] { pattern(1000 * (index + 1)) }

  /// A folder with the members of a group, `missing` of which has not arrived.
  private static func stopped(
    _ folder: TestFolder, missing: Int? = nil, of count: Int = 3, more: String = ""
  ) throws -> [String] {
    let server = try TestServer(over: folder)
    return try names.indices.map { index in
      let upload = try server.create(
        names[index].description, length: bytes(index).count,
        metadata: groupMetadata(index + 1, of: count) + more)
      if index != missing { #expect(try server.patch(upload, at: 0, bytes(index)).status == 204) }
      return upload
    }
  }

  private static func ids(_ uploads: [String]) -> String {
    uploads.map { $0.split(separator: "/").last.map(String.init) ?? "" }.map { "\($0)\n" }.joined()
  }

  private static func expectAll(_ folder: TestFolder, _ what: String) {
    for (index, name) in names.enumerated() { #expect(folder.read(name) == bytes(index), "\(what): \(name)") }
  }

  /// `shown`: how many members have their names. `settled`: how many of these are recorded as finished.
  @Test(arguments: 0...3, 0...3) func killedWhilePublishing(_ shown: Int, _ settled: Int) throws {
    if settled > shown { return }
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, of: 4)
    folder.write(kept(uploads[0], "group"), Array((Self.ids(uploads) + "end\n").utf8))
    for index in 0..<shown { folder.rename(kept(uploads[index], "data"), to: Self.names[index]) }
    for index in 0..<settled { folder.rename(kept(uploads[index], "info"), to: kept(uploads[index], "done")) }
    let server = try TestServer(over: folder)
    // The server has finished before it listens.
    Self.expectAll(folder, "\(shown) shown, \(settled) settled")
    #expect(!folder.kept.contains { $0.hasSuffix(".group") || $0.hasSuffix(".data") }, "\(folder.kept)")
    for (index, upload) in uploads.enumerated() {
      #expect(try server.offset(upload) == Self.bytes(index).count)
      #expect(try server.ask("HEAD", upload, [tus])["Upload-Outcome"] == nil)
    }
  }

  /// The names had other files, which the group replaces.
  @Test(arguments: 0...3) func killedWhileReplacing(_ shown: Int) throws {
    let folder = try TestFolder()
    for name in Self.names { folder.write(name, [1, 2, 3]) }
    let uploads = try Self.stopped(folder, of: 4, more: ",overwrite \(base64("true"))")
    folder.write(kept(uploads[0], "group"), Array((Self.ids(uploads) + "end\n").utf8))
    for index in 0..<shown { folder.rename(kept(uploads[index], "data"), to: Self.names[index]) }
    let server = try TestServer(over: folder)
    Self.expectAll(folder, "\(shown) shown")
    #expect(!folder.kept.contains { $0.hasSuffix(".group") || $0.hasSuffix(".data") }, "\(folder.kept)")
    withExtendedLifetime(server) {}
  }

  /// The list was not written as a whole: the group was not begun.
  @Test func killedBeforeTheGroupWasBegun() throws {
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, of: 4)
    folder.write(kept(uploads[0], "group"), Array(Self.ids(uploads).utf8))
    let server = try TestServer(over: folder)
    for name in Self.names { #expect(folder.read(name) == nil) }
    for upload in uploads { #expect(try server.ask("HEAD", upload, [tus])["Upload-Outcome"] == "waiting") }
  }

  /// The server was killed after the last byte had come, and before the group was begun.
  @Test func killedWithAllMembersComplete() throws {
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, missing: 1)
    folder.write(kept(uploads[1], "data"), Self.bytes(1))
    let server = try TestServer(over: folder)
    #expect(try eventually { Self.names.allSatisfy { folder.read($0) != nil } })
    Self.expectAll(folder, "complete")
    withExtendedLifetime(server) {}
  }

  @Test func whatWaitsSurvivesAKill() throws {
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, missing: 0)
    let server = try TestServer(over: folder)
    for name in Self.names { #expect(folder.read(name) == nil) }
    #expect(try server.ask("HEAD", uploads[1], [tus])["Upload-Outcome"] == "waiting")
    #expect(try server.ask("HEAD", uploads[2], [tus])["Upload-Outcome"] == "waiting")
    #expect(try server.patch(uploads[0], at: 0, Self.bytes(0)).status == 204)
    Self.expectAll(folder, "after a restart")
  }

  /// Somebody has put another file under a name while the server was down: nothing of the group appears, and the members that
  /// had their names wait again. `shown`: how many had theirs.
  @Test(arguments: 0...2) func aNameThatWasTakenSinceTheKill(_ shown: Int) throws {
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, of: 4)
    folder.write(kept(uploads[0], "group"), Array((Self.ids(uploads) + "end\n").utf8))
    for index in 0..<shown { folder.rename(kept(uploads[index], "data"), to: Self.names[index]) }
    folder.write(Self.names[shown], [1, 2, 3])
    let server = try TestServer(over: folder)
    for (index, name) in Self.names.enumerated() { #expect(folder.read(name) == (index == shown ? [1, 2, 3] : nil)) }
    #expect(!folder.kept.contains { $0.hasSuffix(".group") })
    for (index, upload) in uploads.enumerated() where index != shown {
      #expect(try server.ask("HEAD", upload, [tus])["Upload-Outcome"] == "waiting")
      #expect(folder.read(kept(upload, "data")) == Self.bytes(index))
    }
  }

  /// A disk error has damaged the record of a member that had no name yet.
  @Test func aRecordThatWasDamagedSinceTheKill() throws {
    let folder = try TestFolder()
    let uploads = try Self.stopped(folder, of: 4)
    folder.write(kept(uploads[0], "group"), Array((Self.ids(uploads) + "end\n").utf8))
    for index in 0..<2 { folder.rename(kept(uploads[index], "data"), to: Self.names[index]) }
    folder.write(kept(uploads[2], "info"), [1, 2, 3])
    let server = try TestServer(over: folder)
    for name in Self.names { #expect(folder.read(name) == nil) }
    for upload in uploads.prefix(2) { #expect(try server.ask("HEAD", upload, [tus])["Upload-Outcome"] == "waiting") }
  }
}
