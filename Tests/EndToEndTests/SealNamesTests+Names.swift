import Foundation
import TestSupport
import Testing

// What the names are given to, and which of several indexes counts.
extension EndToEnd.SealNamesTests {
  /// Numbers are given to the real names.
  @Test func filesOfOnePushGetNumbers() async throws {
    let key = try await makeKey()
    try scratch.file("a/film.mov", 1000)
    try scratch.file("b/film.mov", 2000, seed: 2)
    let server = try await ServeProcess.start(in: scratch)
    let push = [
      "push", "--seal", key.recipient, "--seal-names", "--on-conflict", "rename", scratch.path("a/film.mov"),
      scratch.path("b/film.mov"), server.url,
    ]
    let (end, first) = try await run(push)
    #expect(end == .exited(0), "\(first.output)\(first.errors)")
    let (again, second) = try await run(push)
    #expect(again == .exited(0) && second.output.contains("2 done before"), "\(second.output)\(second.errors)")
    #expect(server.folder.files().count == 3)
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == ["film.mov": 1000, "film-2.mov": 2000])
  }

  /// A later run knows the number that a file got because its name was taken there, whatever the opaque name begins with.
  @Test(arguments: 0..<4) func aTakenNameGetsANumberThatStays(_ round: Int) async throws {
    let key = try await makeKey()
    try scratch.file("a/film.mov", 1000)
    let other = try scratch.file("b/film.mov", 2000, seed: 2)
    let server = try await ServeProcess.start(in: scratch)
    let options = ["--seal", key.recipient, "--seal-names", "-i", key.file, "--on-conflict", "rename"]
    #expect(try await run(["push"] + options + [scratch.path("a/film.mov"), server.url]).end == .exited(0))
    let push = ["push"] + options + [other, server.url]
    let (end, first) = try await run(push, journal: "second.sqlite")
    #expect(end == .exited(0), "\(first.output)\(first.errors)")
    let (again, second) = try await run(push, journal: "second.sqlite")
    #expect(again == .exited(0) && second.output.contains("1 done before"), "\(second.output)\(second.errors)")
    let check = try await CheckRun(
      scratch, environment: ["FULLBORE_JOURNAL": scratch.path("second.sqlite")], "--seal", key.recipient,
      "--seal-names", other, server.url)
    #expect(check.paths(.same, by: "digest") == ["film-2.mov.age"], "\(check.events)")
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == ["film.mov": 1000, "film-2.mov": 2000])
  }

  /// Of a file that was replaced, the newest index has the time.
  @Test func theNewestIndexCounts() async throws {
    let key = try await makeKey()
    let film = try scratch.file("card/film.mov", 1000)
    let server = try await ServeProcess.start(in: scratch)
    for number in 0..<4 {
      try scratch.file("card/film.mov", 2000, seed: UInt64(number))
      let date = Date(timeIntervalSince1970: Double(1_600_000_000 + number * 1000))
      try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: film)
      _ = try await expect(
        0, "push", "--overwrite", "--no-times", "--seal", key.recipient, "--seal-names", card, server.url)
    }
    #expect(indexes(in: server.folder.files().keys).count == 4 && server.folder.files().count == 5)
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    expectRestored()
  }

  /// Each destination has names of its own, and a layout changes the real ones.
  @Test func twoDestinationsHaveDifferentNames() async throws {
    let key = try await makeKey()
    try makeTree()
    let second = try Scratch()
    let (here, there) = (try await ServeProcess.start(in: scratch), try await ServeProcess.start(in: second))
    _ = try await expect(
      0, "push", "--layout", "{year}/{folder}/{name}", "--seal", key.recipient, "--seal-names", "--also", there.url,
      card,
      here.url)
    let (names, others) = (Set(here.folder.files().keys), Set(there.folder.files().keys))
    #expect(names.count == 5 && others.count == 5 && names.isDisjoint(with: others), "\(names) \(others)")
    _ = try await expect(0, "unseal", here.url, restored, "-i", key.file)
    _ = try await expect(0, "unseal", there.url, second.path("restored"), "-i", key.file)
    Folder(restored).expectSame(as: Folder(second.path("restored")))
    #expect(Folder(restored).files().keys.contains { $0.hasSuffix("/Hochzeit/IMG_0001-Geheim.jpg") })
  }

  /// A folder with more files than are held in memory is listed twice, so that its indexes are read first.
  @Test func aLargeFolderIsListedTwice() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    let folder = server.folder.path
    for number in 0..<10_050 {
      _ = FileManager.default.createFile(atPath: "\(folder)/plain\(number)", contents: Data([1]))
    }
    let unseal = try await expect(1, "unseal", folder, restored, "-i", key.file)
    #expect(unseal.output.contains("4 files restored") && unseal.output.contains("10,050 failed"), "\(unseal.output)")
    Folder(scratch.path("card")).expectSame(as: Folder(scratch.path("restored")).published())
  }
}

extension Folder {
  /// Removes what an unfinished `unseal` has left.
  fileprivate func published() -> Folder {
    try? FileManager.default.removeItem(atPath: path + "/.fullbore-unseal")
    return self
  }
}
