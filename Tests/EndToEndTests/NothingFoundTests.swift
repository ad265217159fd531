import Foundation
import Testing

extension EndToEnd {
  /// A push reports everything that it leaves out.
  @Suite(.serialized) struct NothingFoundTests {
    let scratch = try! Scratch()

    /// A card that is not mounted looks like an empty folder.
    @Test(arguments: [[], ["--json"], ["--quiet"], ["--dry-run"]])
    func anEmptyFolderIsNoSuccess(_ options: [String]) async throws {
      let folder = try scratch.folder("card")
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(Tool.fullbore, ["push"] + options + [scratch.path("card"), server.url], in: scratch)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      let said = push.output + push.errors
      #expect(said.contains("no files found in ") && said.contains("card: is it the right folder"), "\(said)")
      _ = folder
    }

    /// One card is mounted, and another one is not.
    @Test(arguments: [[], ["--dry-run"]])
    func anEmptyFolderAmongOthersIsNoSuccess(_ options: [String]) async throws {
      try scratch.folder("A")
      try scratch.file("B/b.jpg", 10)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        Tool.fullbore, ["push"] + options + [scratch.path("A/"), scratch.path("B/"), server.url], in: scratch)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("no files found in \(scratch.path("A/")): is it the right"), "\(push.errors)")
      #expect(server.folder.files().count == (options.isEmpty ? 1 : 0))
      guard options.isEmpty else { return }
      // All files that were found have arrived, so the push leaves nothing to resume.
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
      // The pattern excludes all files, but they exist: the card is mounted.
      try scratch.file("A/a.txt", 10)
      let (end, again) = try await fullbore(
        "push", "--include", "*.jpg", scratch.path("A/"), scratch.path("B/"), server.url, in: scratch)
      #expect(end == .exited(0) && again.errors.isEmpty, "\(again.errors)")
      // The card was mounted before, and is empty now.
      let (all, first) = try await fullbore("push", scratch.path("A/"), scratch.path("B/"), server.url, in: scratch)
      #expect(all == .exited(0), "\(first.errors)")
      try FileManager.default.removeItem(atPath: scratch.path("A/a.txt"))
      let (last, cleared) = try await fullbore("push", scratch.path("A/"), scratch.path("B/"), server.url, in: scratch)
      #expect(last == .exited(0) && cleared.errors.contains("from which files were sent before"), "\(cleared.errors)")
    }

    /// Its files were sent and deleted, so the card was probably cleared.
    @Test func aFolderWhoseFilesWereSentBeforeMayBeEmpty() async throws {
      let file = try scratch.file("card/DCIM/a.jpg", 10)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", scratch.path("card"), server.url, in: scratch).end == .exited(0))
      try FileManager.default.removeItem(atPath: file)
      let (end, push) = try await fullbore("push", scratch.path("card"), server.url, in: scratch)
      #expect(end == .exited(0) && push.errors.contains("from which files were sent before"), "\(push.errors)")
      // A check of a card that is not mounted must not report that everything has arrived.
      let (checked, check) = try await fullbore("push", "--check", scratch.path("card"), server.url, in: scratch)
      #expect(checked == .exited(1) && check.errors.contains("nothing could be checked"), "\(check.errors)")
      try scratch.folder("card2")
      let (other, second) = try await fullbore("push", scratch.path("card2"), server.url, in: scratch)
      #expect(other == .exited(1), "another folder whose name begins the same: \(second.output)\(second.errors)")
    }

    /// A card that was removed while it was pushed must not be taken for a cleared one.
    @Test func anEmptyFolderWhoseFilesAreUnfinishedIsNoSuccess() async throws {
      for name in ["a.mov", "b.mov", "c.mov"] { try scratch.file("card/\(name)", 8 << 20) }
      let card = scratch.path("card/")
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "4M", card, server.url, in: scratch)
      try await until("some of it has arrived") {
        if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
        return server.folder.unfinished() > 1 << 20 ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
      try FileManager.default.moveItem(atPath: scratch.path("card"), toPath: scratch.path("unplugged"))
      try scratch.folder("card")
      let (end, empty) = try await fullbore("push", card, server.url, in: scratch)
      #expect(end == .exited(1), "\(empty.output)\(empty.errors)")
      #expect(
        empty.errors.contains("no files found in \(card), and 3 files from there are not finished: is it the right"),
        "\(empty.errors)")
      // When the card is inserted again, its files arrive. After that it may be cleared.
      try FileManager.default.removeItem(atPath: scratch.path("card"))
      try FileManager.default.moveItem(atPath: scratch.path("unplugged"), toPath: scratch.path("card"))
      #expect(try await fullbore("push", card, server.url, in: scratch).end == .exited(0))
      try FileManager.default.removeItem(atPath: scratch.path("card"))
      try scratch.folder("card")
      let (last, cleared) = try await fullbore("push", card, server.url, in: scratch)
      #expect(last == .exited(0) && cleared.errors.contains("from which files were sent before"), "\(cleared.errors)")
    }

    /// The journal does not know the files that an earlier push did not reach.
    @Test func anEmptyFolderThatAnEarlierPushHasNotReadIsNoSuccess() async throws {
      try scratch.file("card/a.jpg", 10)
      let card = scratch.path("card/")
      var server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", card, server.url, in: scratch).end == .exited(0))
      try scratch.file("card/b.jpg", 10)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      #expect(try await fullbore("push", "--retries", "0", card, server.url, in: scratch).end == .exited(3))
      server = try await server.startAgain(in: scratch)
      for name in ["a.jpg", "b.jpg"] { try FileManager.default.removeItem(atPath: scratch.path("card/\(name)")) }
      for _ in 0..<2 {
        let (end, empty) = try await fullbore("push", card, server.url, in: scratch)
        #expect(end == .exited(1), "\(empty.output)\(empty.errors)")
        #expect(empty.errors.contains("an earlier push ended before it had found all files there"), "\(empty.errors)")
      }
      #expect(try await fullbore("abort", "--unread", in: scratch).end == .exited(0))
      #expect(try await fullbore("push", card, server.url, in: scratch).end == .exited(0))
    }

    @Test func anEmptyFolderThatWasSentElsewhereOnlyIsNoSuccess() async throws {
      let file = try scratch.file("card/a.jpg", 10)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", scratch.path("card"), server.url + "one/", in: scratch).end == .exited(0))
      try FileManager.default.removeItem(atPath: file)
      let (end, push) = try await fullbore("push", scratch.path("card"), server.url + "two/", in: scratch)
      #expect(end == .exited(1) && push.errors.contains("card: is it the right folder"), "\(push.errors)")
    }

    /// The journal's files change with every file that is sent.
    @Test func theFilesOfTheJournalAreLeftOut() async throws {
      for name in ["a.jpg", ".j.sqlite-notes", "sub/.j.sqlite"] { try scratch.file("home/\(name)", 10) }
      let server = try await ServeProcess.start(in: scratch)
      for _ in 0..<2 {
        let (end, push) = try await fullbore(
          "push", "--hidden", "--verbose", "--journal", scratch.path("home/.j.sqlite"), scratch.path("home/"),
          server.url,
          in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        for suffix in ["", "-wal", "-shm"] {
          let words = "home/.j.sqlite\(suffix)  left out: it belongs to the journal of this push"
          #expect(push.output.contains(words), "\(push.output)")
        }
      }
      #expect(server.folder.files().keys.sorted() == [".j.sqlite-notes", "a.jpg", "sub/.j.sqlite"])
    }

    @Test(arguments: [[], ["--dry-run"]]) func theJournalOfThePushIsNamedWhereNothingElseIsFound(_ options: [String])
      async throws
    {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("state/j.sqlite", 0)
      let state = scratch.path("state/")
      let push = try Command(
        Tool.fullbore, ["push"] + options + ["--journal", scratch.path("state/j.sqlite"), state, server.url],
        in: scratch)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(
        push.errors.contains("no files found in \(state) (the journal of this push is there, which is not sent)"),
        "\(push.errors)")
    }

    /// Tests its own name, and a link to it.
    @Test func aJournalThatIsNamedAsASourceIsRefused() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("state/a.jpg", 10)
      let journal = scratch.path("state/j.sqlite")
      #expect(try await fullbore("push", "--journal", journal, file, server.url, in: scratch).end == .exited(0))
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("link.sqlite"), withDestinationPath: journal)
      for source in [journal, journal + "-wal", scratch.path("link.sqlite")] {
        let (end, push) = try await fullbore("push", "--journal", journal, source, server.url, in: scratch)
        #expect(end == .exited(1), "\(push.output)\(push.errors)")
        #expect(push.errors.contains("\(source): it belongs to the journal of this push"), "\(push.errors)")
      }
      #expect(server.folder.files() == ["a.jpg": 10])
      // With another journal it is an ordinary file.
      let (end, push) = try await fullbore("push", journal, server.url, in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
    }

    @Test func aDryRunCountsOnlyWhatWouldBeSent() async throws {
      let files = [try scratch.file("a/IMG_1.jpg", 10), try scratch.file("b/IMG_1.jpg", 2000)]
      let (end, push) = try await fullbore(
        "push", "--dry-run", files[0], files[1], scratch.path("gone.jpg"), "http://127.0.0.1:9/", in: scratch)
      #expect(end == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.output.contains("1 file, 10 B: nothing was sent"), "\(push.output)")
      #expect(push.output.contains("; 2 failed, which would not be sent"), "\(push.output)")
    }

    @Test func hiddenFilesThatAreLeftOutAreCounted() async throws {
      for name in ["a.jpg", ".b.jpg", ".trash/c.jpg", "d/.e.jpg"] { try scratch.file("card/\(name)", 10) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", scratch.path("card"), server.url, in: scratch)
      #expect(end == .exited(0))
      #expect(push.output.contains("; 3 hidden left out (--hidden sends them)"), "\(push.output)")
      #expect(!push.output.contains(".b.jpg"), "\(push.output)")
      let (_, verbose) = try await fullbore("push", "-v", scratch.path("card"), server.url, in: scratch)
      #expect(verbose.output.contains("card/.b.jpg  left out: its name begins with a dot"), "\(verbose.output)")
      let (_, json) = try await fullbore("push", "--json", scratch.path("card"), server.url, in: scratch)
      #expect(json.output.contains(#""hidden":3,"#), "\(json.output)")
      let (_, all) = try await fullbore("push", "--hidden", scratch.path("card"), server.url, in: scratch)
      #expect(all.output.contains("3 files sent") && !all.output.contains("left out"), "\(all.output)")
    }

    @Test func aPatternThatExcludesNothingIsNamed() async throws {
      for name in ["a.jpg", "b.tmp"] { try scratch.file("card/\(name)", 10) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--exclude", "*.tmp", "--exclude", "b.*", "--exclude", "*.TMP", scratch.path("card"), server.url,
        in: scratch)
      #expect(end == .exited(0))
      #expect(push.errors.contains("--exclude '*.TMP' matched nothing"), "\(push.errors)")
      #expect(!push.errors.contains("'b.*'") && !push.errors.contains("'*.tmp'"), "each has matched: \(push.errors)")
    }

    @Test func aDryRunLeavesOutWhatTheWatchLeavesOut() async throws {
      for name in ["a.jpg", "film.mov.part", ".a.jpg.AbCdEf"] { try scratch.file("gallery/\(name)", 10) }
      let (end, watch) = try await fullbore(
        "watch", "--dry-run", "--verbose", "--hidden", scratch.path("gallery/"), "http://127.0.0.1:9/", in: scratch)
      #expect(end == .exited(0), "\(watch.errors)")
      #expect(watch.output.contains("a.jpg  10 B") && watch.output.contains("1 file, 10 B"), "\(watch.output)")
      #expect(watch.output.contains("film.mov.part  left out: its name is that of a file"), "\(watch.output)")
    }

    @Test func aLinkThatLeadsNowhereAndIsLeftOutIsNoFailure() async throws {
      try scratch.file("card/a.jpg", 10)
      try FileManager.default.createSymbolicLink(atPath: scratch.path("card/b.txt"), withDestinationPath: "gone")
      let server = try await ServeProcess.start(in: scratch)
      for filter in [["--include", "*.jpg"], ["--exclude", "*.txt"]] {
        let push = try Command(
          Tool.fullbore, ["push"] + filter + [scratch.path("card"), server.url], in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.errors)")
        let (_, status) = try await fullbore("status", in: scratch)
        #expect(!status.output.contains("ended before all its files were known"), "\(status.output)")
      }
    }

    /// The journal has no entry for an unreadable file. `status` reports it without claiming that the push was
    /// interrupted.
    @Test func aBrokenLinkIsReportedUntilItIsRepaired() async throws {
      try scratch.file("card/a.jpg", 10)
      try FileManager.default.createSymbolicLink(atPath: scratch.path("card/b.jpg"), withDestinationPath: "gone.jpg")
      let server = try await ServeProcess.start(in: scratch)
      let words = "could not read some of them"
      #expect(try await fullbore("push", scratch.path("card"), server.url, in: scratch).end == .exited(1))
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(status.output.contains(words) && status.output.contains("names what it cannot read"), "\(status.output)")
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1) && resume.errors.contains(words), "\(resume.errors)")
      try scratch.file("card/gone.jpg", 20)
      #expect(try await fullbore("push", scratch.path("card"), server.url, in: scratch).end == .exited(0))
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
    }

    @Test func aFolderIsLeftOutByItsNameWithASlash() async throws {
      for name in ["a.jpg", "thumbs/b.jpg", "2024/thumbs/c.jpg", "2024/d.jpg"] { try scratch.file("card/\(name)", 10) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--exclude", "thumbs/", "--exclude", "/a.jpg", scratch.path("card"), server.url, in: scratch)
      #expect(end == .exited(0) && push.errors.isEmpty, "\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["card/2024/d.jpg"])
      let (refused, wrong) = try await fullbore(
        "push", "--exclude", "[a.jpg", scratch.path("card"), server.url, in: scratch)
      #expect(refused == .exited(2) && wrong.errors.contains("its '[' is not closed"), "\(wrong.errors)")
    }
  }
}
