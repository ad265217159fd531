import BlobCrypto
import BlobSQLite
import BlobTesting
import Blobs
import Foundation
import TestSupport
import Testing

// Kills, other machines, and the other commands.
extension EndToEnd.SealNamesTests {
  /// Stops the peer before it takes an index, so that the files are there and their names are not.
  private func peerThatHoldsIndexes(_ gate: Monitor<(isShut: Bool, isReached: Bool)>) -> S3Peer {
    var settings = S3Peer.Options()
    settings.refuse = { _, request in
      guard request.method == "PUT", request.path.contains("fullbore-index-") else { return nil }
      let isShut = gate.update { state in
        state.isReached = true
        return state.isShut
      }
      if !isShut { return nil }
      _ = gate.wait(atMost: .seconds(60)) { $0.isShut ? nil : true }
      // The client was killed meanwhile.
      return (403, "AccessDenied")
    }
    return S3Peer(settings)
  }

  @Test(arguments: ["push", "resume", "push with other options"])
  func aRunThatWasKilledBeforeItsIndexIsMadeUpFor(_ way: String) async throws {
    let key = try await makeKey()
    try makeTree()
    let gate = Monitor((isShut: true, isReached: false))
    let s3 = peerThatHoldsIndexes(gate)
    let endpoint = ["--endpoint", "http://127.0.0.1:\(s3.port)"]
    let push = ["push", "--seal", key.recipient, "--seal-names"] + endpoint + [card, "s3://media/in/"]
    let killed = try Command(Tool.fullbore, push, in: scratch, environment: S3Peer.environment)
    try await until("the index is sent") { gate.update { $0.isReached } || killed.end != nil ? true : nil }
    killed.kill(SIGKILL)
    #expect(try await killed.wait() == .killed(by: SIGKILL))
    gate.update { $0.isShut = false }
    #expect(s3.objects.count == 4 && indexes(in: s3.objects.keys).isEmpty, "\(s3.objects.keys)")
    let before = s3.requests.count
    var again = way == "resume" ? ["resume"] : push
    if way.hasSuffix("options") { again.insert("--no-times", at: 1) }
    let (end, command) = try await run(again)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(indexes(in: s3.objects.keys).count == 1 && s3.objects.count == 5)
    let puts = s3.requests.dropFirst(before).filter { $0.hasPrefix("PUT ") }
    #expect(puts.count == 1, "\(puts)")
    let (unsealed, unseal) = try await run(["unseal", "s3://media/in/", restored, "-i", key.file] + endpoint)
    #expect(unsealed == .exited(0), "\(unseal.output)\(unseal.errors)")
    expectRestored()
    // Everything is in an index now.
    let count = s3.requests.count
    #expect(try await run(again).end == .exited(0))
    #expect(s3.requests.dropFirst(count).allSatisfy { !$0.hasPrefix("PUT ") })
  }

  @Test func anIndexThatIsRefusedFailsThePush() async throws {
    let key = try await makeKey()
    try makeTree()
    var settings = S3Peer.Options()
    settings.refuse = { _, request in request.path.contains("fullbore-index-") ? (403, "AccessDenied") : nil }
    let s3 = S3Peer(settings)
    let (end, push) = try await run(
      ["push", "--seal", key.recipient, "--seal-names", "--delete-after-verify"]
        + ["--endpoint", "http://127.0.0.1:\(s3.port)", card, "s3://media/in/"])
    #expect(end != .exited(0), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("fullbore-index-"), "\(push.errors)")
    #expect(Folder(scratch.path("card")).files().count == 4, "nothing is deleted whose name would be lost")
  }

  /// At random moments, over the whole of a push.
  @Test func everyFileHasItsNameAfterRandomKills() async throws {
    let key = try await makeKey()
    for number in 0..<200 {
      try scratch.file("card/Ordner \(number % 7)/Bild \(number).jpg", 500, seed: UInt64(number))
    }
    let server = try await ServeProcess.start(in: scratch)
    let push = ["push", "--jobs", "4", "--seal", key.recipient, "--seal-names", card, server.url]
    let seed = UInt64.random(in: 0 ... .max)
    var random = SplitMix64(seed: seed)
    for _ in 0..<6 {
      let killed = try Command(Tool.fullbore, push, in: scratch)
      let already = server.folder.files().count
      let more = Int.random(in: 0..<60, using: &random)
      try await until("more is there") {
        server.folder.files().count >= min(200, already + more) || killed.end != nil ? true : nil
      }
      killed.kill(SIGKILL)
      _ = try await killed.wait()
    }
    // A small file that had arrived when its push was killed counts as another one, and has its name all the same.
    let last = try Command(Tool.fullbore, push, in: scratch)
    #expect([.exited(0), .exited(1)].contains(try await last.wait()), "\(last.output)\(last.errors)")
    let unseal = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(unseal.output.contains("200 files restored"), "seed \(seed): \(unseal.output)\(unseal.errors)")
    expectRestored()
    let count = server.folder.files().count
    _ = try await Command(Tool.fullbore, push, in: scratch).wait()
    #expect(server.folder.files().count == count, "each name is sent once")
  }

  /// Another machine takes the key from the index, and gives its files the same names.
  @Test func anotherMachineGoesOn() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    let first = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    #expect(first.errors.contains("a new key of the names"), "\(first.errors)")
    let before = Set(server.folder.files().keys)
    try scratch.file("card/zweite.jpg", 1000)
    let options = ["--seal", key.recipient, "--seal-names", "--identity", key.file]
    let (end, second) = try await run(
      ["push", "--on-conflict", "skip"] + options + [card, server.url], journal: "second.sqlite")
    #expect(end == .exited(1) && second.errors.contains("is taken from an index"), "\(second.output)\(second.errors)")
    #expect(second.output.contains("4 skipped") || second.output.contains("4 left out"), "\(second.output)")
    #expect(Set(server.folder.files().keys).subtracting(before).count == 2)
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    expectRestored()
    // Without the identity all is sent again under other names, which the notice says.
    let third = try await expect(
      0, "push", "--seal", key.recipient, "--seal-names", card, server.url, journal: "third.sqlite")
    #expect(third.errors.contains("--identity FILE"), "\(third.errors)")
    #expect(server.folder.files().count == 7 + 6)
    let other = try await makeKey("other")
    let (wrong, refused) = try await run(
      ["push", "--seal", key.recipient, "--seal-names", "-i", other.file, card, server.url], journal: "fourth.sqlite")
    #expect(wrong == .exited(1) && refused.errors.contains("key of the names"), "\(refused.errors)")
    #expect(server.folder.files().count == 13)
  }

  @Test func theKeyIsForItsOwnerAlone() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.contains("-names-") }
    let file = scratch.path(try #require(names.first))
    #expect(names.count == 1)
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    chmod(file, 0o644)
    let push = try await expect(1, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    #expect(push.errors.contains("chmod 600"), "\(push.errors)")
    chmod(file, 0o600)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    // As after a kill, and without the key nothing can be named.
    try Database(BytePath(scratch.path("journal.sqlite"))).execute("UPDATE unindexed SET named_in = NULL")
    try FileManager.default.removeItem(atPath: file)
    let resume = try await expect(1, "resume")
    #expect(resume.errors.contains("is gone: run the push again with --identity FILE"), "\(resume.errors)")
    _ = try await expect(
      0, "push", "--seal", key.recipient, "--seal-names", "-i", key.file, card, server.url)
    #expect(indexes(in: server.folder.files().keys).count == 2)
  }

  @Test func filesAreCheckedUnderTheirOpaqueNames() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    let options = ["--seal", key.recipient, "--seal-names"]
    #expect(try await run(["push"] + options + [card, server.url]).end == .exited(0))
    let check = try await CheckRun(scratch, "--seal", key.recipient, "--seal-names", card, server.url)
    #expect(check.end == .exited(0), "\(check.events)")
    #expect(check.paths(.same, by: "digest").contains("Hochzeit/IMG_0001-Geheim.jpg.age"), "\(check.events)")
    #expect(check.paths(.extra).isEmpty, "the index is none of the user's files: \(check.events)")
    try scratch.file("received/andere.jpg", 10)
    let extra = try await CheckRun(scratch, "--seal", key.recipient, "--seal-names", card, server.url)
    #expect(extra.paths(.extra) == ["andere.jpg"], "\(extra.events)")
    // Another journal does not know the names.
    let (end, blind) = try await run(["check"] + options + [card, server.url], journal: "other.sqlite")
    #expect(end == .exited(1) && blind.errors.contains("--identity FILE"), "\(blind.output)\(blind.errors)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.contains("other.sqlite-names") }
        .isEmpty)
    let (read, reading) = try await run(
      ["check", "--download", "--identity", key.file] + options + [card, server.url], journal: "other.sqlite")
    #expect(read == .exited(0), "\(reading.output)\(reading.errors)")
    let (deleted, removal) = try await run(["push", "--delete-after-verify"] + options + [card, server.url])
    #expect(deleted == .exited(0), "\(removal.output)\(removal.errors)")
    #expect(Folder(scratch.path("card")).files().isEmpty)
    _ = try await expect(1, "unseal", server.url, restored, "-i", key.file)
    #expect(FileManager.default.fileExists(atPath: restored + "/Hochzeit/IMG_0001-Geheim.jpg"))
  }

  /// The index of every five minutes has not been sent yet.
  @Test(arguments: [SIGINT, SIGTERM]) func aWatchThatEndsSendsItsIndex(_ signal: Int32) async throws {
    let key = try await makeKey()
    try scratch.file("gallery/Anna.jpg", 1000)
    let server = try await ServeProcess.start(in: scratch)
    let watch = try await WatchProcess.start(to: server.url, in: scratch, "--seal", key.recipient, "--seal-names")
    try await watch.until("the file is there") { server.folder.files().count == 1 ? true : nil }
    watch.command.kill(signal)
    _ = try await watch.command.wait()
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == ["Anna.jpg": 1000])
  }

  /// The journal of this machine has sent an index, which does not name the files of the other one.
  @Test func theNamesThatAnotherMachineHasSentAreLookedForToo() async throws {
    let key = try await makeKey()
    try makeTree()
    try scratch.file("other/new.mov", 500)
    let server = try await ServeProcess.start(in: scratch)
    let seal = ["--seal", key.recipient, "--seal-names", "--identity", key.file]
    #expect(try await run(["push"] + seal + [card, server.url]).end == .exited(0))
    let index = try #require(indexes(in: server.folder.files().keys).first)
    let both = [card, scratch.path("other") + "/", server.url]
    #expect(try await run(["push"] + seal + both.dropFirst(), journal: "other.sqlite").end == .exited(0))
    let check = ["check", "--download"] + seal + both
    let (safe, first) = try await run(check, journal: "other.sqlite")
    #expect(safe == .exited(0) && first.output.contains("All 5 files"), "\(first.output)\(first.errors)")
    try FileManager.default.removeItem(atPath: server.folder.path + "/" + index)
    let (unsafe, second) = try await run(check, journal: "other.sqlite")
    #expect(unsafe == .exited(1), "\(second.output)\(second.errors)")
    #expect(second.errors.contains("no index there tells what 4 files are called"), "\(second.errors)")
  }

  /// A journal of version 16 does not know in which index a name is.
  @Test func theNamesOfAnOlderJournalAreSentOnceMore() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    let arguments = ["--seal", key.recipient, "--seal-names", card, server.url]
    #expect(try await run(["push"] + arguments).end == .exited(0))
    let journal = try Database(BytePath(scratch.path("journal.sqlite")))
    // Its digests are of SHA-256.
    for path in server.folder.files().keys {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(server.folder.path)/\(path)"))
      try journal.execute(
        """
        UPDATE sealed SET digest = x'\(Digest.hex(of: Array(bytes), .sha256))'
        WHERE upload = (SELECT id FROM upload WHERE target LIKE '%\(path)%')
        """)
    }
    try journal.execute(
      """
      DELETE FROM unindexed; DROP INDEX unnamed; DROP TABLE names_index;
      ALTER TABLE unindexed DROP COLUMN named_in; ALTER TABLE taken DROP COLUMN named_in;
      ALTER TABLE sealed DROP COLUMN algorithm; ALTER TABLE sealed RENAME COLUMN digest TO sha256; PRAGMA user_version=16;
      """)
    let index = try #require(indexes(in: server.folder.files().keys).first)
    try FileManager.default.removeItem(atPath: server.folder.path + "/" + index)
    let (unsafe, check) = try await run(["check"] + arguments)
    #expect(unsafe == .exited(1), "\(check.output)\(check.errors)")
    #expect(check.errors.contains("no index of this journal tells what 4 files are called"), "\(check.errors)")
    #expect(try await run(["push", "--check"] + arguments).end == .exited(0))
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == Folder(scratch.path("card")).files())
  }
}
