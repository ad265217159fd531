import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore check` with Fullbore's own server: what is proved, what is not, and what is asked again.
  @Suite(.serialized) struct CheckTests {
    let scratch = try! Scratch()
    private var card: String { scratch.path("card/DCIM/") }

    private func makeCard(_ count: Int = 12) throws {
      for number in 0..<count { try scratch.photo("card/DCIM/100A/IMG_\(number).JPG", seed: UInt64(number)) }
      for number in 0..<3 { try scratch.photo("card/DCIM/101 ä%/J \(number).JPG", seed: UInt64(100 + number)) }
    }

    /// A server that has all files of the card.
    private func served(_ count: Int = 12) async throws -> ServeProcess {
      try makeCard(count)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", card, server.url, in: scratch)
      try #require(end == .exited(0), "\(push.errors)")
      return server
    }

    private func flip(_ path: String) throws {
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
      let before = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
      let byte = try #require(try file.read(upToCount: 1)?.first)
      try file.seek(toOffset: 0)
      try file.write(contentsOf: Data([byte ^ 1]))
      try file.close()
      try FileManager.default.setAttributes([.modificationDate: try #require(before)], ofItemAtPath: path)
    }

    @Test func allThatIsThereIsProved() async throws {
      let server = try await served()
      let (end, check) = try await fullbore("check", card, server.url, in: scratch)
      #expect(end == .exited(0), "\(check.output)\(check.errors)")
      #expect(
        check.output == "All 15 files are at \(server.url) with the same content. It is safe to format this card.\n")
    }

    /// The second check finds it although the first one has proved the file, and the journal knows that.
    @Test(arguments: [false, true]) func aFlippedByteAtTheServerIsFound(_ wasChecked: Bool) async throws {
      let server = try await served()
      if wasChecked { _ = try await fullbore("check", card, server.url, in: scratch) }
      try flip("\(server.folder.path)/100A/IMG_3.JPG")
      let events = try await CheckRun(scratch, card, server.url)
      #expect(events.end == .exited(1))
      #expect(events.paths(.different) == ["100A/IMG_3.JPG"])
      #expect(events.summary["same"] as? Int == 14)
      #expect(events.sentence.contains("1 different there") && events.sentence.hasPrefix("Do not format this card"))
    }

    /// The other files of its folder at the destination are here too, and nobody has asked for them.
    @Test func theNeighboursOfASingleFileAreNotExtra() async throws {
      let server = try await served()
      let (end, check) = try await fullbore("check", card + "100A/IMG_1.JPG", server.url + "100A/", in: scratch)
      #expect(end == .exited(0) && !check.output.contains("only at"), "\(check.output)\(check.errors)")
    }

    @Test func checkReportsMissingExtraHiddenAndUnreadableFiles() async throws {
      let server = try await served()
      try FileManager.default.removeItem(atPath: "\(server.folder.path)/100A/IMG_1.JPG")
      try scratch.photo("received/101 ä%/other ü.JPG", seed: 7)
      try scratch.photo("received/elsewhere/not asked.JPG", seed: 8)
      try scratch.file("card/DCIM/.hidden", 10)
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("card/DCIM/100A/gone.JPG"), withDestinationPath: "/nowhere/at/all")
      let events = try await CheckRun(scratch, card, server.url)
      #expect(events.end == .exited(1))
      #expect(events.paths(.missing) == ["100A/IMG_1.JPG"])
      #expect(events.paths(.extra) == ["101 ä%/other ü.JPG"])
      #expect(events.paths(.unreadable) == [scratch.path("card/DCIM/100A/gone.JPG")])
      #expect(events.summary["hidden"] as? Int == 1)
      #expect(events.sentence.contains("1 missing there, 1 not readable here"), "\(events.sentence)")
      #expect(events.sentence.contains("'fullbore push --check \(card) \(server.url)' sends what is missing"))
    }

    /// The command in the sentence does what it says.
    @Test func theCommandThatIsNamedMendsIt() async throws {
      let server = try await served()
      try FileManager.default.removeItem(atPath: "\(server.folder.path)/100A/IMG_1.JPG")
      let (_, first) = try await fullbore("check", "--exclude", "a b*", card, server.url, in: scratch)
      let command = try #require(first.output.split(separator: "'fullbore ").last?.split(separator: "' sends").first)
      let mend = try Command("sh", ["-c", "\(Tool.fullbore) \(command)"], in: scratch)
      #expect(try await mend.wait() == .exited(0), "\(command): \(mend.errors)")
      let (end, check) = try await fullbore("check", card, server.url, in: scratch)
      #expect(end == .exited(0), "\(check.errors)")
    }

    /// Formatting a card deletes them too, so nothing is called safe.
    @Test func hiddenAndFilteredFilesAreInTheSentence() async throws {
      let server = try await served()
      try scratch.file("card/DCIM/.hidden", 10)
      try scratch.file("card/DCIM/notes.txt", 10)
      let (end, check) = try await fullbore("check", "--exclude", "*.txt", card, server.url, in: scratch)
      #expect(end == .exited(0), "\(check.errors)")
      #expect(!check.output.contains("safe"))
      #expect(
        check.output.contains("1 hidden (--hidden compares them), 1 left out by --include and --exclude"),
        "\(check.output)")
    }

    /// Some cameras keep films elsewhere on the card.
    @Test func checkNamesOtherFilesOnTheCard() async throws {
      let server = try await served()
      try scratch.photo("card/PRIVATE/M4ROOT/CLIP/C0001.MP4", seed: 9)
      let (end, check) = try await fullbore("check", card, server.url, in: scratch)
      #expect(end == .exited(0), "\(check.errors)")
      #expect(
        check.output.contains("is lost if you format this card: \(scratch.path("card/PRIVATE")), which no source has"))
      let (part, one) = try await fullbore("check", card + "100A", server.url, in: scratch)
      #expect(part == .exited(0), "\(one.errors)")
      #expect(
        one.output.contains("\(scratch.path("card/DCIM/101 ä%")) and 1 more, which no source has"), "\(one.output)")
    }

    @Test func aSecondRunAsksForNothingThatDidNotChange() async throws {
      let server = try await served()
      let first = try await CheckRun(scratch, card, server.url)
      #expect(first.summary["compared_before"] as? Int == 0)
      let second = try await CheckRun(scratch, card, server.url)
      #expect(second.end == .exited(0) && second.summary["compared_before"] as? Int == 15)
      #expect(second.sentence.contains("with the same content, compared since 20"), "\(second.sentence)")
      let anew = try await CheckRun(scratch, "--again", card, server.url)
      #expect(anew.end == .exited(0) && anew.summary["compared_before"] as? Int == 0)
    }

    @Test func onlyWhatChangedIsComparedAgain() async throws {
      let server = try await served()
      _ = try await CheckRun(scratch, card, server.url)
      // The same bytes under a new time at the server; other bytes of the same length at the source.
      try await Command("touch", ["\(server.folder.path)/100A/IMG_2.JPG"], in: scratch).wait()
      try scratch.file("card/DCIM/100A/IMG_5.JPG", 20_000, seed: 99)
      let events = try await CheckRun(scratch, card, server.url)
      #expect(events.end == .exited(1))
      #expect(events.paths(.different) == ["100A/IMG_5.JPG"])
      #expect(events.paths(.same, before: false) == ["100A/IMG_2.JPG"])
      #expect(events.summary["compared_before"] as? Int == 13)
    }

    /// The earlier push has given the file another name, which only the journal knows.
    @Test func aRenamedFileIsFoundThroughTheJournal() async throws {
      try makeCard(2)
      let server = try await ServeProcess.start(in: scratch)
      try scratch.photo("received/100A/IMG_0.JPG", seed: 77)
      let (end, push) = try await fullbore("push", "--on-conflict", "rename", card, server.url, in: scratch)
      try #require(end == .exited(0), "\(push.errors)")
      let events = try await CheckRun(scratch, card, server.url)
      #expect(events.end == .exited(0), "\(events.sentence)")
      #expect(events.paths(.same).contains("100A/IMG_0-2.JPG"))
      #expect(events.paths(.extra) == ["100A/IMG_0.JPG"])
    }

    @Test func aFolderWithoutFilesProvesNothing() async throws {
      let server = try await served()
      let (end, check) = try await fullbore("check", try scratch.folder("empty/DCIM"), card, server.url, in: scratch)
      #expect(end == .exited(1))
      #expect(check.errors.contains("no files found in") && !check.output.contains("safe"), "\(check.output)")
    }

    @Test func wrongUsageAndAnAbsentServerHaveTheirStatuses() async throws {
      try makeCard(1)
      #expect(try await fullbore("check", "-", "http://127.0.0.1:1/a", in: scratch).end == .exited(2))
      #expect(try await fullbore("check", "--dry-run", card, "http://127.0.0.1:1/", in: scratch).end == .exited(2))
      let (end, check) = try await fullbore("check", "--retries", "0", card, "http://127.0.0.1:1/", in: scratch)
      #expect(end == .exited(3) && check.output.hasPrefix("Do not format this card yet"), "\(check.output)")
    }

    @Test(arguments: ["--also=http://127.0.0.1:1/b/", "--delete-after-verify", "--mhl-at=here", "--mhl-hash=md5"])
    func anOptionThatOnlyAPushTakesSaysWhatToDo(_ option: String) async throws {
      let (end, check) = try await fullbore("check", card, "http://127.0.0.1:1/", option, in: scratch)
      #expect(end == .exited(2) && check.errors.contains(": a check "), "\(check.errors)")
    }

    /// A server that lets nobody read tells nothing.
    @Test func aServerThatOnlyReceivesProvesNothing() async throws {
      try makeCard(2)
      let server = try await ServeProcess.start(in: scratch, "--receive-only")
      _ = try await fullbore("push", card, server.url, in: scratch)
      let events = try await CheckRun(scratch, card, server.url)
      #expect(events.end == .exited(1))
      #expect(events.paths(.notComparable).count == 5, "\(events.sentence)")
    }

    /// The files of a hundred folders take three requests: one that finds out whether the server takes such requests, one for
    /// the files, one for the numbers of files in the folders.
    @Test func manyFoldersTakeFewRequests() async throws {
      for number in 0..<100 { try scratch.file("card/DCIM/\(number)/a.jpg", 100 + number) }
      let log = scratch.path("access.log")
      let server = try await ServeProcess.start(in: scratch, "--log", log)
      _ = try await fullbore("push", "-q", card, server.url, in: scratch)
      func requests() -> [Substring] {
        ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n").filter {
          $0.contains("\"QUERY ") || $0.contains("\"GET ") || $0.contains("\"HEAD ")
        }
      }
      let before = requests().count
      let (end, check) = try await fullbore("check", card, server.url, in: scratch)
      #expect(end == .exited(0), "\(check.errors)")
      server.command.kill(SIGTERM)
      try await server.command.wait()
      #expect(requests().count - before == 3, "\(requests())")
    }
  }
}

/// One run of `fullbore check --json`. Every event is held against the published schema.
struct CheckRun {
  enum Result: String { case same, missing, sealed, different, extra, unreadable, notComparable = "not_comparable" }
  let end: Command.End
  let events: [[String: Any]]

  init(_ scratch: Scratch, environment: [String: String] = [:], _ arguments: String...) async throws {
    let command = try Command(Tool.fullbore, ["check", "--json"] + arguments, in: scratch, environment: environment)
    end = try await command.wait()
    events = try Self.events(in: command.output)
    try #require(events.last?["event"] as? String == "summary", "\(command.output)\(command.errors)")
  }

  static func events(in output: String) throws -> [[String: Any]] {
    let schema = try EventSchema(of: "check")
    return try output.split(separator: "\n").map { line in
      let event = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(schema.fault(in: event) == nil, "\(event)")
      return event
    }
  }

  var summary: [String: Any] { events.last ?? [:] }
  var sentence: String { summary["message"] as? String ?? "" }

  /// The paths with a result, sorted. `before`: only those that were, or were not, compared before.
  func paths(_ result: Result, before: Bool? = nil, by evidence: String? = nil) -> [String] {
    events.filter { event in
      event["event"] as? String == "checked" && event["result"] as? String == result.rawValue
        && (before == nil || event["compared_before"] as? Bool == before)
        && (evidence == nil || event["known_by"] as? String == evidence)
    }.compactMap { $0["path"] as? String }.sorted()
  }
}
