import BlobCrypto
import BlobSQLite
import BlobTesting
import BlobUpload
import Blobs
import Foundation
import TestSupport
import Testing

// `check` and `--delete-after-verify` where files are sealed.
extension EndToEnd.SealTests {
  private var card: String { scratch.path("card/DCIM/") }

  private func run(_ arguments: String..., journal: String? = nil) async throws -> Command {
    var environment = S3Peer.environment
    if let journal { environment["FULLBORE_JOURNAL"] = scratch.path(journal) }
    let command = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
    try await command.wait()
    return command
  }

  /// Changes a byte, and leaves the time.
  private func flip(_ path: String, at offset: UInt64) throws {
    let before = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: offset)
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: offset)
    try file.write(contentsOf: Data([byte ^ 1]))
    try file.close()
    try FileManager.default.setAttributes([.modificationDate: try #require(before)], ofItemAtPath: path)
  }

  @Test func sealedFilesAreComparedByTheirDigests() async throws {
    let key = try await makeKey()
    for size in [0, 1, 65_536, 200_000] { try scratch.file("card/DCIM/\(size).mov", size) }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run("push", "--seal", key.recipient, card, server.url).end == .exited(0))
    let check = try await run("check", "--seal", key.recipient, card, server.url)
    #expect(check.end == .exited(0), "\(check.output)\(check.errors)")
    #expect(
      check.output.contains("All 4 files are at \(server.url) with the same content. It is safe"), "\(check.output)")
    try flip("\(server.folder.path)/200000.mov.age", at: 100_000)
    try scratch.file("card/DCIM/65536.mov", 65_536, seed: 9)
    let events = try await CheckRun(scratch, "--again", "--seal", key.recipient, card, server.url)
    #expect(events.end == .exited(1))
    #expect(events.paths(.different) == ["200000.mov.age"])
    #expect(events.paths(.same, by: "length") == ["65536.mov.age"], "another version was sealed")
    #expect(events.paths(.same, by: "digest") == ["0.mov.age", "1.mov.age"])
    // The journal keeps the digest of what was sent last.
    #expect(
      try await run("push", "--seal", key.recipient, "--on-conflict", "overwrite", card, server.url).end == .exited(0))
    let again = try await CheckRun(scratch, "--seal", key.recipient, card, server.url)
    #expect(again.paths(.same, by: "digest").contains("65536.mov.age"), "\(again.sentence)")
  }

  /// An overwriting PUT asks nothing first.
  @Test func theDigestOfAnOverwritingPutIsKept() async throws {
    let (key, server) = (try await makeKey(), try await ServeProcess.start(in: scratch))
    try scratch.file("card/DCIM/a.mov", 3000)
    #expect(try await run("push", "--overwrite", "--seal", key.recipient, card, "put+\(server.url)").end == .exited(0))
    let check = try await CheckRun(scratch, "--seal", key.recipient, card, "put+\(server.url)")
    #expect(check.end == .exited(0) && check.paths(.same, by: "digest") == ["a.mov.age"], "\(check.sentence)")
  }

  /// Journals of earlier versions, and those of pushes to servers of earlier versions, have another digest.
  @Test func digestsOfTwoAlgorithmsAreCompared() async throws {
    let key = try await makeKey()
    for size in [1000, 2000, 3000, 4000] { try scratch.file("card/DCIM/\(size).mov", size) }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run("push", "--seal", key.recipient, card, server.url).end == .exited(0))
    let journal = try Database(BytePath(scratch.path("journal.sqlite")))
    let count = try journal.statement("SELECT count(*) FROM sealed WHERE algorithm = 'xxh128' AND length(digest) = 16")
    #expect(try count.first { $0.int(0) } == 4)
    for size in [1000, 2000] {
      let sealed = try Data(contentsOf: URL(fileURLWithPath: "\(server.folder.path)/\(size).mov.age"))
      let digest = Digest.hex(of: Array(sealed), .sha256)
      try journal.execute(
        """
        UPDATE sealed SET algorithm = 'sha256', digest = x'\(digest)'
        WHERE upload = (SELECT id FROM upload WHERE target LIKE '%/\(size).mov.age%')
        """)
    }
    let names = [1000, 2000, 3000, 4000].map { "\($0).mov.age" }
    let same = try await CheckRun(scratch, "--again", "--seal", key.recipient, card, server.url)
    #expect(same.end == .exited(0) && same.paths(.same, by: "digest") == names, "\(same.sentence)")
    for size in [2000, 4000] { try flip("\(server.folder.path)/\(size).mov.age", at: 700) }
    let torn = try await run("check", "--again", "--seal", key.recipient, card, server.url)
    #expect(torn.end == .exited(1) && torn.output.contains("2 different there"), "\(torn.output)")
    #expect(torn.errors.contains("2000.mov.age: different at the destination: its SHA-256"), "\(torn.errors)")
    #expect(torn.errors.contains("4000.mov.age: different at the destination: its XXH128"), "\(torn.errors)")
    let push = try await run(
      "push", "--check", "--seal", key.recipient, "--on-conflict", "overwrite", card, server.url)
    #expect(push.end == .exited(0) && push.output.contains("2 files sent"), "\(push.output)\(push.errors)")
    #expect(try await run("check", "--again", "--seal", key.recipient, card, server.url).end == .exited(0))
  }

  /// The key of the file is gone. The digest of what was sent is not, and the whole file is sent again.
  @Test(arguments: ["rename", "overwrite"]) func aSealedFileDamagedAtTheServerIsSentAgain(_ rule: String) async throws {
    let key = try await makeKey()
    for size in [10_000, 200_000] { try scratch.file("card/DCIM/\(size).mov", size) }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run("push", "--seal", key.recipient, card, server.url).end == .exited(0))
    try flip("\(server.folder.path)/200000.mov.age", at: 100_000)
    let push = try await run("push", "--check", "--seal", key.recipient, "--on-conflict", rule, card, server.url)
    #expect(push.end == .exited(0) && push.output.contains("1 file sent"), "\(push.output)\(push.errors)")
    let check = try await run("check", "--again", "--seal", key.recipient, card, server.url)
    #expect(check.end == .exited(0) && check.output.contains("It is safe"), "\(check.output)\(check.errors)")
  }

  /// The digest is that of the whole file, whatever way it was sent, and however often that was cut.
  @Test(arguments: ["put+", "tus+", "resumable+", "tus+ in parts"], [0, 3])
  func aDigestIsMadeOverKills(_ way: String, _ kills: Int) async throws {
    let key = try await makeKey()
    let film = try scratch.file("film.mov", 24 << 20)
    let server = try await ServeProcess.start(in: scratch)
    let words = way.split(separator: " ", maxSplits: 1)
    let options = words.count > 1 ? ["--parts-at-once", "3"] : []
    let arguments = options + ["--seal", key.recipient, film, words[0] + server.url]
    for number in 0..<kills {
      let killed = try Command(Tool.fullbore, ["push", "--bwlimit", "8M"] + arguments, in: scratch)
      let wanted = Int64(number + 1) * (way == "put+" ? 1 << 20 : 5 << 20)
      try await until("more has arrived") { server.folder.unfinished() > wanted ? true : nil }
      killed.kill(SIGKILL)
      try await killed.wait()
    }
    let push = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    if kills > 0, way != "put+" { #expect(push.output.contains("resumed"), "\(push.output)") }
    let check = try await CheckRun(scratch, "--seal", key.recipient, film, server.url)
    #expect(check.paths(.same, by: "digest") == ["film.mov.age"], "\(check.sentence)")
    #expect(check.end == .exited(0))
  }

  @Test func withoutTheOptionTheCheckSaysThatFilesAreSealed() async throws {
    let key = try await makeKey()
    try scratch.file("card/DCIM/a.mov", 1000)
    try scratch.file("card/DCIM/b.mov", 1000)
    let server = try await ServeProcess.start(in: scratch)
    let folder = try scratch.folder("dav")
    let dav = Peer.rclone.isThereOrWanted ? try await DavServer.rclone.start(into: folder, in: scratch) : nil
    let places = [server.url] + (dav.map { ["dav+\($0.url)"] } ?? [])
    for url in places {
      #expect(try await run("push", "--seal", key.recipient, card, url).end == .exited(0))
      try scratch.file("card/DCIM/new.mov", 1000)
      let check = try await run("check", card, url)
      #expect(check.end == .exited(1))
      #expect(check.errors.contains("a.mov: sealed at the destination: a.mov.age"), "\(check.errors)")
      #expect(check.output.contains("1 missing there, 2 sealed there"), "\(check.output)")
      #expect(check.output.contains("--seal RECIPIENT'") && !check.output.contains("fullbore push"), "\(check.output)")
      try FileManager.default.removeItem(atPath: scratch.path("card/DCIM/new.mov"))
    }
  }

  @Test func checkDecryptsTheSealedFilesThatItReadsBack() async throws {
    let key = try await makeKey()
    let other = try await makeKey("other")
    for size in [0, 65_536, 300_000] { try scratch.file("card/DCIM/\(size).mov", size) }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run("push", "--seal", key.recipient, card, server.url).end == .exited(0))
    // Another journal knows no digests.
    let sizes = try await run("check", "--seal", key.recipient, card, server.url, journal: "new.sqlite")
    #expect(sizes.end == .exited(1))
    #expect(sizes.output.contains("only their sizes were compared"), "\(sizes.output)")
    #expect(sizes.output.contains("--download --identity FILE'"), "\(sizes.output)")
    let given = try await run(
      "check", "--seal", key.recipient, "-i", key.file, card, server.url, journal: "new.sqlite")
    #expect(given.output.contains("--download --identity \(key.file)'"), "\(given.output)")
    let download = ["--download", "--seal", key.recipient, "--identity"]
    func check(_ identity: String) async throws -> Command {
      try await run(
        "check", download[0], download[1], download[2], download[3], identity, card, server.url, journal: "new.sqlite")
    }
    let read = try await check(key.file)
    #expect(read.end == .exited(0), "\(read.output)\(read.errors)")
    let known = try await run("check", "--seal", key.recipient, card, server.url, journal: "new.sqlite")
    #expect(known.end == .exited(0) && known.output.contains("compared since 20"), "\(known.output)")
    for path in server.folder.files().keys {
      try await Command("touch", ["\(server.folder.path)/\(path)"], in: scratch).wait()
    }
    let wrong = try await check(other.file)
    #expect(wrong.end == .exited(1) && wrong.output.contains("3 not comparable"), "\(wrong.output)\(wrong.errors)")
    #expect(wrong.errors.contains("it is for none of the given keys"), "\(wrong.errors)")
    try flip("\(server.folder.path)/300000.mov.age", at: 150_000)
    let torn = try await check(key.file)
    #expect(torn.end == .exited(1) && torn.output.contains("1 different there"), "\(torn.output)\(torn.errors)")
    // Sealed for the same person, with other bytes of the same length.
    let film = try scratch.file("again/65536.mov", 65_536, seed: 77)
    #expect(
      try await run("push", "--overwrite", "--seal", key.recipient, film, server.url, journal: "third.sqlite").end
        == .exited(0))
    let replaced = try await check(key.file)
    #expect(replaced.output.contains("2 different there"), "\(replaced.output)\(replaced.errors)")
    #expect(replaced.errors.contains("65536.mov.age: different at the destination"), "\(replaced.errors)")
    let without = try await run("check", "--download", "--seal", key.recipient, card, server.url)
    #expect(without.end == .exited(2) && without.errors.contains("--identity FILE is wanted"), "\(without.errors)")
  }

  /// The journal of this machine has not sent the files, and a file that is sealed again has other bytes.
  @Test(arguments: [[], ["--seal-names"]]) func aSealedFileProvedByACheckIsNotSentAgain(_ names: [String]) async throws
  {
    let key = try await makeKey()
    for size in [0, 70_000, 5 << 20] { try scratch.file("card/DCIM/\(size).mov", size) }
    let server = try await ServeProcess.start(in: scratch)
    let seal = ["--seal", key.recipient] + names + [card, server.url]
    func run(_ arguments: [String], journal: String = "new.sqlite") async throws -> Command {
      let identity = names.isEmpty && arguments[0] == "push" ? [] : ["--identity", key.file]
      let command = try Command(
        Tool.fullbore, arguments + identity + seal, in: scratch,
        environment: ["FULLBORE_JOURNAL": scratch.path(journal)])
      try await command.wait()
      return command
    }
    #expect(try await run(["push"], journal: "first.sqlite").end == .exited(0))
    let sent = server.folder.files().filter { !$0.key.hasPrefix("fullbore-index-") }
    let refused = try await run(["push"])
    #expect(refused.end == .exited(1) && refused.errors.contains("'fullbore check --download"), "\(refused.errors)")
    let check = try await run(["check", "--download"])
    #expect(check.end == .exited(0), "\(check.output)\(check.errors)")
    // A file at the destination that has changed since the check counts as another one.
    let small = try #require(sent.first { 1000..<1 << 20 ~= $0.value }).key
    try await Command("touch", ["\(server.folder.path)/\(small)"], in: scratch).wait()
    let changed = try await run(["push"])
    #expect(changed.end == .exited(1) && changed.output.contains("2 done before"), "\(changed.output)\(changed.errors)")
    #expect(try await run(["check", "--download"]).end == .exited(0))
    let push = try await run(["push", "--on-conflict", "rename", "-v"])
    #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
    #expect(push.output.contains("done before, read back and compared"), "\(push.output)")
    #expect(server.folder.files().filter { !$0.key.hasPrefix("fullbore-index-") } == sent)
  }

  /// Amazon's service compares what it stores with a checksum, and the ETag names it.
  @Test func theVersionThatS3GaveToASealedObjectProvesIt() async throws {
    let key = try await makeKey()
    try scratch.file("card/DCIM/small.jpg", 1000)
    try scratch.file("card/DCIM/film.mov", 24 << 20)
    let peer = S3Peer()
    let options = ["--endpoint", "http://127.0.0.1:\(peer.port)", "--seal", key.recipient]
    func check() async throws -> CheckRun {
      try await CheckRun(
        scratch, environment: S3Peer.environment, options[0], options[1], options[2], options[3], card, "s3://media/in/"
      )
    }
    let push = try await run("push", options[0], options[1], options[2], options[3], card, "s3://media/in/")
    #expect(push.end == .exited(0), "\(push.errors)")
    let events = try await check()
    #expect(events.paths(.same, by: "digest") == ["film.mov.age", "small.jpg.age"], "\(events.sentence)")
    #expect(events.end == .exited(0))
    // Another object of the same length, sealed by someone else.
    let other = try await run(
      "push", "--overwrite", options[0], options[1], options[2], options[3], card + "small.jpg", "s3://media/in/",
      journal: "other.sqlite")
    #expect(other.end == .exited(0), "\(other.errors)")
    let replaced = try await check()
    #expect(replaced.end == .exited(1))
    #expect(replaced.paths(.same, by: "length") == ["small.jpg.age"], "\(replaced.sentence)")
  }

  @Test func provedSealedFilesAreDeletedHere() async throws {
    let key = try await makeKey()
    for name in ["a", "b"] { try scratch.file("card/DCIM/\(name).mov", 70_000) }
    let kept = scratch.path("kept")
    try FileManager.default.copyItem(atPath: scratch.path("card/DCIM"), toPath: kept)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run("push", "--seal", key.recipient, card, server.url).end == .exited(0))
    try flip("\(server.folder.path)/a.mov.age", at: 60_000)
    let push = try await run("push", "--delete-after-verify", "--seal", key.recipient, card, server.url)
    #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
    #expect(Folder(card).files().keys.sorted() == ["a.mov"])
    #expect(push.errors.contains("a.mov: stays here: it is different there"), "\(push.errors)")
    try await expectOpens("\(server.folder.path)/b.mov.age", to: "\(kept)/b.mov", with: key.file)
    let peer = DavPeer()
    let dav = try await run(
      "push", "--delete-after-verify", "--verify", "--seal", key.recipient, card, "dav+\(peer.endpoint)")
    #expect(dav.end == .exited(1))
    #expect(Folder(card).files().keys.sorted() == ["a.mov"])
    #expect(dav.errors.contains("nothing tells there whether its sealed bytes are"), "\(dav.errors)")
  }

  /// Nothing of a large file is sent to a name that is taken.
  @Test(arguments: ["put+", "tus+", "resumable+"]) func aTakenNameIsRefusedBeforeTheBytes(_ dialect: String)
    async throws
  {
    let key = try await makeKey()
    let film = try scratch.file("film.mov", 24 << 20)
    try scratch.file("received/film.mov.age", 10)
    let server = try await ServeProcess.start(in: scratch)
    let relay = RecordingRelay(to: server.port)
    let push = try await run(
      "push", "--seal", key.recipient, "--header", "Host: 127.0.0.1:\(server.port)", film,
      "\(dialect)http://127.0.0.1:\(relay.port)/")
    #expect(
      push.end == .exited(1) && push.errors.contains("film.mov.age: a file of that name is there already"),
      "\(push.output)\(push.errors)")
    #expect(push.errors.contains("--on-conflict rename keeps both"), "\(push.errors)")
    #expect(relay.count < 1 << 20, "\(relay.count) bytes were sent")
  }
}
