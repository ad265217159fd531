import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `push --mhl` and `check --mhl`, held against the reference program of ASC MHL.
  @Suite(.serialized) struct HashListTests {
    let scratch = try! Scratch()
    var card: String { scratch.path("CARD") }

    func makeCard() throws {
      for number in 0..<4 { try scratch.photo("CARD/100A/IMG_\(number).JPG", seed: UInt64(number)) }
      try scratch.file("CARD/clips/A001/large.mov", 20_000_000)
      try scratch.file("CARD/clips/empty.mov", 0)
      try scratch.photo("CARD/a & b <c>/ü \"q\".JPG", seed: 9)
    }

    private func reference(
      _ program: String = "ascmhl_debug", _ arguments: String...
    ) async throws -> (end: Command.End, text: String) {
      let python = try #require(Peer.ascmhl.path, Peer.ascmhl.reason)
      let command = try Command(python, ["-m", "ascmhl.cli.\(program)"] + arguments, in: scratch)
      return (try await command.wait(), command.output + command.errors)
    }

    private func flip(_ path: String) throws {
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      bytes[bytes.count / 2] ^= 1
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try handle.write(contentsOf: bytes)
      try handle.close()
    }

    func lists(_ folder: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: "\(folder)/ascmhl").filter { $0.hasSuffix(".mhl") }.sorted()
    }

    private func text(_ folder: String, _ list: String) throws -> String {
      try String(contentsOfFile: "\(folder)/ascmhl/\(list)", encoding: .utf8)
    }

    @discardableResult
    func push(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws -> Command {
      let command = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
      #expect(
        try await command.wait() == .exited(0), "\(command.output)\(command.errors)", sourceLocation: sourceLocation)
      return command
    }

    @Test(.needs(.ascmhl), arguments: ["xxh128", "xxh3", "xxh64", "md5", "sha1", "c4"])
    func theReferenceVerifiesWhatWasWritten(_ format: String) async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      _ = try await push("--mhl", "--mhl-hash", format, card, server.url)
      let there = "\(server.folder.path)/CARD"
      let list = try #require(try lists(there).first)
      #expect(list.hasPrefix("0001_CARD_2"))
      let (end, said) = try await reference("ascmhl_debug", "verify", there)
      #expect(end == .exited(0), "\(said)")
      let (folders, saidOfFolders) = try await reference("ascmhl_debug", "verify", "-dh", there)
      #expect(folders == .exited(0), "\(saidOfFolders)")
      let (same, check) = try await fullbore("check", "--mhl", there, in: scratch)
      #expect(
        same == .exited(0) && check.output == "All 7 files are as the hash lists say.\n",
        "\(check.output)\(check.errors)")
      try flip("\(there)/clips/A001/large.mov")
      let (other, found) = try await reference("ascmhl_debug", "verify", there)
      #expect(other != .exited(0) && found.contains("large.mov"), "\(found)")
      let (different, ours) = try await fullbore("check", "--mhl", "\(there)/ascmhl/\(list)", in: scratch)
      #expect(different == .exited(1) && ours.errors.contains("clips/A001/large.mov: different"), "\(ours.errors)")
    }

    @Test(.needs(.ascmhl), arguments: ["xxh128", "xxh3", "xxh64", "md5", "sha1", "c4"])
    func hashListsOfTheReferenceAreVerified(_ format: String) async throws {
      try makeCard()
      let (end, said) = try await reference("ascmhl", "create", "-h", format, card)
      try #require(end == .exited(0), "\(said)")
      let (same, check) = try await fullbore("check", "--mhl", "\(card)/ascmhl/ascmhl_chain.xml", in: scratch)
      #expect(same == .exited(0), "\(check.output)\(check.errors)")
      try flip("\(card)/100A/IMG_2.JPG")
      try FileManager.default.removeItem(atPath: "\(card)/100A/IMG_1.JPG")
      try scratch.photo("CARD/100A/new.JPG", seed: 77)
      let (different, ours) = try await fullbore("check", "--mhl", "\(card)/ascmhl", "--json", in: scratch)
      #expect(different == .exited(1))
      let results = ours.output.split(separator: "\n").compactMap { line in
        (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: Any]
      }
      func paths(_ result: String) -> [String] {
        results.filter { $0["result"] as? String == result }.compactMap { $0["path"] as? String }
      }
      #expect(paths("different") == ["100A/IMG_2.JPG"] && paths("missing") == ["100A/IMG_1.JPG"])
      #expect(paths("extra") == ["100A/new.JPG"] && paths("same").count == 5, "\(ours.output)")
      #expect(results.last?["event"] as? String == "summary" && results.last?["exit_status"] as? Int == 1)
    }

    /// The second list continues the first one, also with another hash, and the reference accepts both.
    @Test(.needs(.ascmhl)) func generationsContinueEachOther() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let there = "\(server.folder.path)/CARD"
      _ = try await push("--mhl", card, server.url)
      try scratch.photo("CARD/100A/later.JPG", seed: 55)
      _ = try await push("--mhl", "--mhl-hash", "md5", card, server.url)
      let found = try lists(there)
      #expect(found.count == 2 && found[1].hasPrefix("0002_CARD_"))
      let second = try text(there, found[1])
      #expect(second.components(separatedBy: "<md5 action=\"verified\"").count == 8)
      #expect(second.components(separatedBy: "<xxh128 action=\"verified\"").count == 8)
      #expect(second.components(separatedBy: "action=\"original\"").count == 2)
      #expect(try await reference("ascmhl_debug", "verify", there).end == .exited(0))
      #expect(try await reference("ascmhl", "create", "-h", "md5", there).end == .exited(0))
      #expect(try await fullbore("check", "--mhl", there, in: scratch).end == .exited(0))
      _ = try await push("--mhl", "--verify", card, server.url)
      #expect(!(try text(there, #require(lists(there).last)).contains("compared with the destination")))
      try scratch.photo("CARD/100A/last.JPG", seed: 56)
      _ = try await push("--mhl", "--verify", card, server.url)
      #expect(try lists(there).count == 5 && text(there, #require(lists(there).last)).contains("; 1 of "))
      #expect(try await reference("ascmhl_debug", "verify", there).end == .exited(0))
    }

    @Test func aChangedListIsFoundAndNothingIsWrittenAfterIt() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let there = "\(server.folder.path)/CARD"
      _ = try await push("--mhl", card, server.url)
      let list = try #require(try lists(there).first)
      let path = "\(there)/ascmhl/\(list)"
      try text(there, list).replacingOccurrences(of: "IMG_1.JPG", with: "IMG_9.JPG").write(
        toFile: path, atomically: false, encoding: .utf8)
      let (end, check) = try await fullbore("check", "--mhl", there, in: scratch)
      #expect(end == .exited(1) && check.errors.contains("has changed since its C4"), "\(check.errors)")
      let (again, pushed) = try await fullbore("push", "--mhl", card, server.url, in: scratch)
      #expect(again == .exited(1) && pushed.errors.contains("has changed since its C4"), "\(pushed.errors)")
      #expect(try lists(there).count == 1)
    }

    @Test func failedFilesAreNotInTheHashListAndFoldersHaveNoHashes() async throws {
      try makeCard()
      let name = card + "/100A/bad\u{1}.JPG"
      try Data([1]).write(to: URL(fileURLWithPath: name))
      try FileManager.default.createSymbolicLink(atPath: card + "/100A/lost.JPG", withDestinationPath: "nowhere")
      let server = try await ServeProcess.start(in: scratch)
      let (end, pushed) = try await fullbore("push", "--mhl", card, server.url, in: scratch)
      #expect(end == .exited(1))
      #expect(pushed.errors.contains("characters that XML does not allow"), "\(pushed.errors)")
      let there = "\(server.folder.path)/CARD"
      let list = try text(there, try #require(try lists(there).first))
      #expect(
        !list.contains("lost.JPG") && !list.contains("bad") && !list.contains("directoryhash")
          && !list.contains("roothash"))
      #expect(list.components(separatedBy: "</hash>").count == 8)
    }

    /// Bytes that an earlier run has sent have no digest on the way: the source is read for the list.
    @Test(.needs(.ascmhl)) func aResumedPushHasTheWholeFilesHash() async throws {
      try scratch.file("CARD/clips/large.mov", 60_000_000)
      try scratch.photo("CARD/a.JPG", seed: 3)
      let server = try await ServeProcess.start(in: scratch)
      let first = try Command.fullbore(
        "push", "--mhl", "--bwlimit", "20M", "--parts-at-once", "1", card, server.url, in: scratch)
      try await until("the server has some of the file") { server.folder.unfinished() > 2_000_000 ? true : nil }
      first.kill(9)
      _ = try await first.wait()
      #expect((try? lists("\(server.folder.path)/CARD")) == nil, "a list was written before all files were there")
      _ = try await push("--mhl", card, server.url)
      let there = "\(server.folder.path)/CARD"
      #expect(try await reference("ascmhl_debug", "verify", there).end == .exited(0))
      #expect(try await fullbore("check", "--mhl", there, in: scratch).end == .exited(0))
    }

    /// The history beside the files is not pushed as files, and goes on at the destination.
    @Test(.needs(.ascmhl)) func aHistoryAtTheSourceContinuesAtTheDestination() async throws {
      try makeCard()
      try #require(try await reference("ascmhl", "create", "-h", "xxh64", card).end == .exited(0))
      let server = try await ServeProcess.start(in: scratch)
      let there = "\(server.folder.path)/CARD"
      for generation in 2...3 {
        _ = try await push("--mhl", card, server.url, "--journal", scratch.newPath("journal"))
        #expect(try lists(there).count == generation)
      }
      #expect(try lists(card).count == 1)
      // The second list has the hash of the first one beside its own, which is enough for the third one.
      let list = try text(there, try lists(there)[1])
      #expect(!list.contains("action=\"original\"") && list.contains("<xxh64 action=\"verified\""))
      #expect(try await reference("ascmhl_debug", "verify", there).end == .exited(0))
    }

    /// ASC MHL has no word for a replaced file. The reference compares with the first hash of a name and reports the file.
    @Test(.needs(.ascmhl)) func aFileThatIsReplacedOnPurposeIsOriginalAgain() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let there = "\(server.folder.path)/CARD"
      _ = try await push("--mhl", card, server.url)
      try scratch.photo("CARD/100A/IMG_1.JPG", seed: 91)
      let again = try await push("--mhl", "--overwrite", card, server.url)
      #expect(again.errors.contains("1 file with other bytes than earlier lists say"), "\(again.errors)")
      _ = try await push("--mhl", "--overwrite", card, server.url)
      let found = try lists(there)
      try #require(found.count == 3)
      let actions = try found.map { list in
        let text = try text(there, list)
        return ["original", "verified", "failed"].map { text.components(separatedBy: "action=\"\($0)\"").count - 1 }
      }
      #expect(actions == [[7, 0, 0], [1, 6, 0], [0, 7, 0]])
      let (same, check) = try await fullbore("check", "--mhl", there, in: scratch)
      #expect(same == .exited(0), "\(check.output)\(check.errors)")
      let (end, said) = try await reference("ascmhl_debug", "verify", there)
      #expect(end != .exited(0) && said.contains("IMG_1.JPG") && !said.contains("mismatch for IMG_2"), "\(said)")
      try flip("\(there)/100A/IMG_1.JPG")
      let (different, ours) = try await fullbore("check", "--mhl", there, in: scratch)
      #expect(different == .exited(1) && ours.errors.contains("100A/IMG_1.JPG: different"), "\(ours.errors)")
    }

    /// The card has changed since its list was made, and nobody asked to replace anything.
    @Test(.needs(.ascmhl)) func aFileThatDoesNotMatchItsHistoryIsFailed() async throws {
      try makeCard()
      try #require(try await reference("ascmhl", "create", "-h", "xxh128", card).end == .exited(0))
      try flip("\(card)/100A/IMG_2.JPG")
      let server = try await ServeProcess.start(in: scratch)
      let (end, pushed) = try await fullbore("push", "--mhl", card, server.url, in: scratch)
      #expect(end == .exited(1) && pushed.errors.contains("is 'failed' in the new one"), "\(pushed.errors)")
      let there = "\(server.folder.path)/CARD"
      let list = try text(there, try #require(try lists(there).last))
      #expect(list.components(separatedBy: "action=\"failed\"").count == 2)
      #expect(try await fullbore("check", "--mhl", there, in: scratch).end == .exited(1))
    }

    @Test(arguments: ["WebDAV", "S3"]) func theHistoryContinuesAtOtherServers(_ kind: String) async throws {
      try makeCard()
      let (dav, s3) = (DavPeer(), S3Peer())
      let place =
        kind == "S3" ? ["s3://media/", "--endpoint", "http://127.0.0.1:\(s3.port)"] : ["dav+\(dav.endpoint)"]
      for generation in 1...2 {
        let more = ["--journal", scratch.newPath("journal")]
        let command = try Command(
          Tool.fullbore, ["push", "--mhl", card] + place + more, in: scratch, environment: S3Peer.environment)
        #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
        #expect(command.errors.contains("hash list \(generation), of 7 files"), "\(command.errors)")
      }
      let names = kind == "S3" ? s3.names() : dav.names()
      let copy = scratch.path("copy")
      for name in names {
        guard let bytes = kind == "S3" ? s3.contents(of: name) : dav.contents(of: name) else { continue }
        let file = URL(fileURLWithPath: "\(copy)/\(name)")
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: file)
      }
      #expect(try lists("\(copy)/CARD").count == 2)
      let (same, check) = try await fullbore("check", "--mhl", "\(copy)/CARD", in: scratch)
      #expect(same == .exited(0), "\(check.output)\(check.errors)")
    }

    @Test(.needs(.ascmhl)) func aListAtTheSourceIsWrittenThere() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      _ = try await push("--mhl", "--mhl-at", "both", card, server.url)
      for folder in [card, "\(server.folder.path)/CARD"] {
        #expect(try lists(folder).count == 1)
        #expect(try await reference("ascmhl_debug", "verify", folder).end == .exited(0))
      }
      _ = try await push("--mhl", "--mhl-at", "source", card + "/", server.url)
      #expect(try lists(card).count == 2)
    }

    /// A history in a folder below: the reference made both, and the upper one refers to the lower one.
    @Test(.needs(.ascmhl)) func listsBelowAreFollowed() async throws {
      try makeCard()
      try #require(try await reference("ascmhl", "create", "-h", "md5", "\(card)/clips").end == .exited(0))
      try #require(try await reference("ascmhl", "create", "-h", "md5", card).end == .exited(0))
      let (same, check) = try await fullbore("check", "--mhl", card, in: scratch)
      #expect(
        same == .exited(0) && check.errors.contains("clips has hash lists of its own"), "\(check.output)\(check.errors)"
      )
      try flip("\(card)/clips/A001/large.mov")
      let (different, found) = try await fullbore("check", "--mhl", card, in: scratch)
      #expect(different == .exited(1) && found.errors.contains("clips/A001/large.mov: different"), "\(found.errors)")
    }

    @Test func wrongUsesAreRefused() async throws {
      try makeCard()
      for (arguments, message) in [
        (["push", "--mhl-at", "source", card, "http://127.0.0.1:1/"], "--mhl, which is not given"),
        (["push", "--mhl", "--mhl-hash", "crc", card, "http://127.0.0.1:1/"], "wanted one of c4"),
        (["push", "--mhl", card, "form+http://127.0.0.1:1/"], "a form"),
        (["push", "--mhl", "--mhl-at", "both", "--layout", "{name}", card, "http://127.0.0.1:1/"], "--layout"),
        (["check", "--mhl", card, "--download"], "no --download"),
        (["check", "--mhl", card, "a", "b"], "one folder at most"),
        (["check", "--mhl", card, "http://127.0.0.1:1/a/"], "'http://127.0.0.1:1/a/' is a destination"),
      ] {
        let command = try Command(Tool.fullbore, arguments, in: scratch)
        #expect(try await command.wait() == .exited(2), "\(arguments): \(command.errors)")
        #expect(command.errors.contains(message), "\(arguments): \(command.errors)")
      }
      let (end, check) = try await fullbore("check", "--mhl", card, in: scratch)
      #expect(end == .exited(1) && check.errors.contains("give --mhl the file of one list"), "\(check.errors)")
    }
  }
}
