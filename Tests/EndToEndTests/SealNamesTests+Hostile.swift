import BlobUpload
import Blobs
import Foundation
import TestSupport
import Testing

// Indexes that are missing, damaged or made by somebody else, and wrong options.
extension EndToEnd.SealNamesTests {
  /// Seals a text for a recipient, as everyone can who has the public key.
  private func seal(_ text: String, _ recipient: String, as path: String) async throws {
    let plain = scratch.path("plain")
    try text.write(toFile: plain, atomically: true, encoding: .utf8)
    let age = try Command(
      try #require(Peer.age.path, Peer.age.reason), ["-r", recipient, "-o", path, plain], in: scratch)
    #expect(try await age.wait() == .exited(0), "\(age.errors)")
  }

  private func path(_ folder: String, _ names: SealedNames, _ plain: String) -> String {
    "\(folder)/\(names.path(of: BytePath(plain)))"
  }

  /// A tree that was pushed with its names sealed, at a server. `index` is the name of its only index, and `film` is the opaque
  /// name of `oben.mov`.
  private func pushTree(
    _ key: (file: String, recipient: String)
  ) async throws -> (server: ServeProcess, index: String, film: String) {
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    let index = try #require(indexes(in: server.folder.files().keys).first)
    let lines = try await lines(of: "\(server.folder.path)/\(index)", key.file)
    let line = try #require(lines.first { $0.hasSuffix(" oben.mov.age") })
    return (server, index, String(line.prefix { $0 != " " }))
  }

  @Test func filesWithoutAnEntryKeepTheirOpaqueNames() async throws {
    let key = try await makeKey()
    let (server, index, film) = try await pushTree(key)
    let folder = server.folder.path
    try FileManager.default.moveItem(atPath: "\(folder)/\(index)", toPath: scratch.path("index"))
    let blind = try await expect(1, "unseal", server.url, restored, "-i", key.file)
    #expect(blind.errors.contains("\(film): no index there names it"), "\(blind.errors)")
    #expect(blind.output.contains("4 failed"), "\(blind.output)")
    #expect(FileManager.default.contentsEqual(atPath: "\(restored)/\(film.dropLast(4))", andPath: card + "oben.mov"))
    // The index is back, and a file is gone.
    try FileManager.default.moveItem(atPath: scratch.path("index"), toPath: "\(folder)/\(index)")
    try FileManager.default.removeItem(atPath: "\(folder)/\(film)")
    let other = scratch.path("other")
    let missing = try await expect(1, "unseal", server.url, other, "-i", key.file)
    #expect(missing.errors.contains("oben.mov: an index names it, and it is not there as \(film)"), "\(missing.errors)")
    #expect(missing.output.contains("3 files restored") && missing.output.contains("1 failed"), "\(missing.output)")
    // One file alone, with its name from the index beside it.
    try scratch.file("card/neu.mov", 10)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    let one = try #require(
      server.folder.files().keys.first { !$0.contains("/") && !$0.hasPrefix("fullbore-index-") })
    let single = scratch.path("single")
    _ = try await expect(0, "unseal", server.url + one, single, "-i", key.file)
    #expect(Folder(single).files() == ["neu.mov": 10])
  }

  /// Neither changes what the owner's files are called, and nothing is written outside the folder.
  @Test func indexesOfStrangersAreHarmless() async throws {
    let key = try await makeKey()
    let (server, index, film) = try await pushTree(key)
    let folder = server.folder.path
    let names = try #require(SealedNames(key: Array(repeating: 7, count: 32)))
    let head = "fullbore-names 1\nkey \(String(repeating: "07", count: 32))\nwritten 9000000000000000000\n"
    func indexPath(_ letter: String) -> String {
      "\(folder)/fullbore-index-\(String(repeating: letter, count: 26)).age"
    }
    // A line of the owner's file, a path that leads elsewhere, the folder of `unseal`, no index, and no file of age.
    try await seal(head + "\(film) 1 1 hostile.mov.age\n", key.recipient, as: indexPath("a"))
    try await seal(head + "\(names.path(of: "../out.age")) 1 1 ../out.age\n", key.recipient, as: indexPath("b"))
    let record = ".fullbore-unseal/record.age"
    try await seal(head + "\(names.path(of: BytePath(record))) 1 1 \(record)\n", key.recipient, as: indexPath("c"))
    try await seal("no index", key.recipient, as: indexPath("d"))
    try "no file of age".write(toFile: indexPath("e"), atomically: true, encoding: .utf8)
    for plain in ["../out.age", record, "own.age"] {
      let place = path(folder, names, plain)
      try FileManager.default.createDirectory(
        atPath: (place as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try await seal("stranger", key.recipient, as: place)
    }
    try await seal(head + "\(names.path(of: "own.age")) 1 1 own.age\n", key.recipient, as: indexPath("f"))
    // The same entries once more.
    try FileManager.default.copyItem(atPath: "\(folder)/\(index)", toPath: indexPath("g"))
    let unseal = try await expect(1, "unseal", server.url, restored, "-i", key.file)
    // Five indexes, and the two files of which no index is believed.
    #expect(
      unseal.output.contains("5 files restored") && unseal.output.contains("7 failed"),
      "\(unseal.output)\(unseal.errors)")
    let found = Folder(restored).restored()
    #expect(found.contains("own") && found.contains("oben.mov") && !found.contains("hostile.mov"), "\(found)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/oben.mov", andPath: card + "oben.mov"))
    #expect(!FileManager.default.fileExists(atPath: scratch.path("out")))
  }

  @Test func wrongOptionsAreRefused() async throws {
    let key = try await makeKey()
    let film = try scratch.file("film.mov", 10)
    let url = "http://127.0.0.1:1/"
    let without = try await expect(2, "push", "--seal-names", film, url)
    #expect(without.errors.contains("--seal-names: for whom?"), "\(without.errors)")
    let named = try await expect(2, "push", "--seal", key.recipient, "--seal-names", film, url + "film.mov")
    #expect(named.errors.contains("end it with a slash"), "\(named.errors)")
    let identity = try await expect(2, "push", "--seal", key.recipient, "--identity", key.file, film, url)
    #expect(identity.errors.contains("--identity is for --seal-names"), "\(identity.errors)")
    let list = try await expect(2, "push", "--mhl", "--seal", key.recipient, "--seal-names", film, url)
    #expect(list.errors.contains("--mhl and --seal"), "\(list.errors)")
  }

  /// A destination that got files with their names gets all of them again.
  @Test func aPlaceCanHaveTheSetting() async throws {
    let key = try await makeKey()
    try scratch.file("card/Anna.jpg", 1000)
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, card, server.url)
    #expect(server.folder.files().keys.sorted() == ["Anna.jpg.age"])
    try scratch.folder("config/fullbore")
    try "[places.nas]\nurl = \"\(server.url)\"\nseal = \"\(key.recipient)\"\nseal-names = true\n".write(
      toFile: scratch.path("config/fullbore/config.toml"), atomically: true, encoding: .utf8)
    let push = try Command(
      Tool.fullbore, ["push", card, "nas:"], in: scratch, environment: ["XDG_CONFIG_HOME": scratch.path("config")])
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    #expect(server.folder.files().count == 3, "\(server.folder.files())")
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == ["Anna.jpg": 1000])
  }
}
