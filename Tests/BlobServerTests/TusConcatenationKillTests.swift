import BlobServer
import Blobs
import Testing

/// Creates each state that a kill can leave while parts are concatenated, and starts the next server on it.
struct TusConcatenationKillTests {
  private static let bytes = pattern(1000)
  private static let cuts = [300, 300, 650]

  /// Four parts and their final upload, which has claimed them and is not concatenated yet: the second part is empty,
  /// and the last one lacks one byte.
  private struct Stopped {
    let folder = try! TestFolder()
    let parts: [String]
    let final: String

    init() throws {
      let server = try TestServer(over: folder)
      parts = try server.parts(Array(bytes[..<650]), cuts: [300, 300]) + [server.createPart(length: 350)]
      #expect(try server.patch(parts[3], at: 0, Array(bytes[650..<999])).status == 204)
      final = try #require(try server.join(parts, name: "x")["Location"])
      #expect(server.folder.read("x") == nil)
    }

    func length(_ count: Int) -> Int { ([0] + cuts + [bytes.count])[count] }

    /// Adds the last byte, and the bytes of `count` parts with `more` bytes of the next one to the final upload.
    func take(_ count: Int, more: Int = 0, removing removed: Int? = nil) {
      folder.write(kept(parts[3], "data"), Array(bytes[650...]))
      if count == 0 { return }
      folder.write(kept(final, "data"), Array(bytes[..<min(bytes.count, length(count) + more)]))
      for part in parts.prefix(removed ?? count) { folder.remove(kept(part, "data")) }
    }

    func expectWhole(_ what: String) throws {
      let server = try TestServer(over: folder)
      #expect(try server.offset(final) == 1000, "\(what)")
      #expect(folder.read("x") == bytes, "\(what)")
      for (number, part) in parts.enumerated() {
        #expect(try server.offset(part) == length(number + 1) - length(number), "\(what)")
      }
      #expect(!folder.kept.contains { $0.hasSuffix(".data") || $0.hasSuffix(".info") }, "\(what): \(folder.kept)")
      #expect(try server.join(parts, name: "x")["Location"] == final, "\(what)")
    }
  }

  @Test(arguments: 0...4) func killedAfterPartsWereTakenOver(_ count: Int) throws {
    let stopped = try Stopped()
    stopped.take(count)
    try stopped.expectWhole("\(count) parts")
  }

  @Test(arguments: [1, 2, 3], [1, 100, 349]) func killedInTheMiddleOfAPart(_ count: Int, _ more: Int) throws {
    let stopped = try Stopped()
    stopped.take(count, more: more)
    try stopped.expectWhole("\(count) parts and \(more) bytes")
  }

  /// The parts were copied and synced, but some or all of their data files still exist.
  @Test(arguments: 2...4, 1...3) func killedBeforeCopiedPartsWereRemoved(_ count: Int, _ removed: Int) throws {
    let stopped = try Stopped()
    stopped.take(count, removing: min(removed, count))
    try stopped.expectWhole("\(count) parts, \(removed) removed")
  }

  @Test func killedAfterPublishing() throws {
    let stopped = try Stopped()
    stopped.take(4)
    stopped.folder.remove(kept(stopped.final, "data"))
    stopped.folder.write("x", Self.bytes)
    try stopped.expectWhole("published")
  }

  @Test(arguments: 0...3) func killedBeforeAllRecordsWereMarked(_ count: Int) throws {
    let stopped = try Stopped()
    stopped.take(4)
    stopped.folder.remove(kept(stopped.final, "data"))
    stopped.folder.write("x", Self.bytes)
    stopped.folder.rename(kept(stopped.final, "info"), to: kept(stopped.final, "done"))
    for part in stopped.parts.prefix(count) { stopped.folder.rename(kept(part, "info"), to: kept(part, "done")) }
    try stopped.expectWhole("\(count) records")
  }

  @Test func killedBeforeTheFinalWasSaved() throws {
    let folder = try TestFolder()
    var parts: [String] = []
    do {
      let server = try TestServer(over: folder)
      parts = try server.parts(Self.bytes, cuts: Self.cuts)
    }
    folder.write(".fullbore/0123456789abcdef0123456789abcdef.join", [])
    let server = try TestServer(over: folder)
    #expect(!folder.kept.contains { $0.hasSuffix(".join") })
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(folder.read("x") == Self.bytes)
  }

  @Test(arguments: 0...4) func killedWhileDeleting(_ count: Int) throws {
    let stopped = try Stopped()
    stopped.take(2)
    let order = [
      kept(stopped.final, "info"), kept(stopped.final, "data"), kept(stopped.parts[0], "info"),
      kept(stopped.parts[2], "info"), kept(stopped.parts[2], "data"),
    ]
    for name in order.prefix(count + 1) { stopped.folder.remove(name) }
    let server = try TestServer(over: stopped.folder)
    #expect([404, 410].contains(try server.ask("HEAD", stopped.final, [tus]).status))
    #expect([404, 410].contains(try server.ask("HEAD", stopped.parts[0], [tus]).status))
    #expect(stopped.folder.read("x") == nil)
    #expect(!stopped.folder.kept.contains { $0.hasSuffix(".join") })
  }

  /// Only a power failure can lose these bytes: the upload has failed and is reported as gone, even if the starting
  /// server has found it first.
  @Test func bytesThatAreLostAreNotMadeUp() throws {
    for loss in [[0], [2], [0, 1, 2, 3]] {
      let stopped = try Stopped()
      stopped.take(0)
      for number in loss { stopped.folder.remove(kept(stopped.parts[number], "data")) }
      let server = try TestServer(over: stopped.folder)
      #expect(try server.ask("HEAD", stopped.final, [tus]).status == 410, "\(loss)")
      #expect(stopped.folder.read("x") == nil)
    }
    let stopped = try Stopped()
    stopped.take(3)
    stopped.folder.write(kept(stopped.final, "data"), Array(Self.bytes.prefix(649)))
    let server = try TestServer(over: stopped.folder)
    #expect(try server.ask("HEAD", stopped.final, [tus]).status == 410)
    #expect(stopped.folder.read("x") == nil)
  }
}
