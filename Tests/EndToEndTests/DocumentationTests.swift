import BlobUpload
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The commands in the documentation, taken from its text.
  @Suite(.serialized, .needs(.age)) struct DocumentationTests {
    /// The program reads every command with all its values, exactly as before it runs. None is left out: what the running
    /// text leaves out of a command is added, and other names stand for those of the page.
    @Test(arguments: DocumentedPage.all) func theProgramReadsEveryCommand(_ page: DocumentedPage) async throws {
      let texts = try page.commandTexts()
      if texts.isEmpty { return }
      let home = try await DocumentedHome()
      for text in texts {
        for words in DocumentedPage.commands(in: Substring(home.replaced(text, withAddresses: false))) {
          let run = try home.read(Self.completed(words))
          #expect(try await run.wait() == .exited(0), "\(page.name): \(text)\n\(run.errors)")
        }
      }
    }

    /// Values that the command does not take are found, as they would be in a page.
    @Test(arguments: [
      "history --since yesterday", "serve photos --max-size 8X", "serve photos --listen :99999",
      "check --layout '{yaer}' DCIM/ nas:", "push DCIM/ nas: --bwlimit fast", "doctor nas: --pause soon",
      "abort twelve", "unseal nas: restored -i token", "status --only lost",
    ]) func aWrongValueIsRefused(_ line: String) async throws {
      let home = try await DocumentedHome()
      let words = try #require(DocumentedPage.commands(in: "fullbore \(line)").first)
      let run = try home.read(Self.completed(words))
      #expect(try await run.wait() == .exited(2), "\(line): \(run.output)\(run.errors)")
      // Nothing was done.
      #expect(!FileManager.default.fileExists(atPath: home.scratch.path("journal.sqlite")))
    }

    /// Scripts and programs of this repository that a block names are there.
    @Test(arguments: DocumentedPage.all) func theNamedScriptsExist(_ page: DocumentedPage) throws {
      for block in try page.blocks() where block.language == "sh" {
        for line in block.lines {
          let command = line.prefix { $0 != "#" }
          for word in command.split(whereSeparator: { " $()=".contains($0) })
          where word.contains(/^(scripts|Tests|docs|Packaging)\//) {
            #expect(
              FileManager.default.fileExists(atPath: Tool.checkout.appendingPathComponent(String(word)).path),
              "\(page.name): \(line)")
          }
        }
      }
    }

    /// The commands that stand on lines of their own run in the order of the page, against servers of this test.
    @Test(arguments: DocumentedPage.all) func everyLineOfAPageRuns(_ page: DocumentedPage) async throws {
      let lines = try page.runnableLines()
      // A test of its own runs the recipes, and also compares what has arrived.
      if lines.isEmpty || page.name == "README.md" { return }
      let home = try await DocumentedHome(
        places: Set(["nas", "cloud"].filter { name in !lines.contains { $0.text.contains("places add \(name)") } }))
      try await home.startServers(for: lines.map(\.text))
      for line in lines {
        let command = try await home.run(line.text)
        let other = Self.otherEnds[line.text.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)]
        if let end = command.end, !home.running.contains(where: { $0 === command }) {
          let printed = "\(page.name): \(home.replaced(line.text))\n\(command.output)\(command.errors)"
          #expect(end == .exited(other?.status ?? 0), "\(printed)")
          if let other { #expect(printed.contains(other.says), "\(printed)") }
        }
        if let wanted = line.prints { try expect(wanted, from: command, home) }
      }
      try await home.stop()
    }

    /// Commands that end with another status than 0 in the test, and what they print then.
    static let otherEnds: [String: (status: Int32, says: String)] = [
      "fullbore abort 12": (1, "12: no unfinished upload has this number"),
      // An earlier command of that page has sent files there that are not sealed.
      "fullbore unseal nas:2026/ ~/restored -i key.txt": (1, "IMG_0001.JPG: it is not sealed"),
    ]

    /// The blocks of the recipes run in order; servers of this test stand for those that they name.
    @Test func theRecipesOfTheReadmeRun() async throws {
      let home = try await DocumentedHome(places: ["cloud"])
      let gallery = Folder(home.path + "/DCIM")
      let sent = Set(gallery.files().keys.map { "2026/" + $0 })
      var last: Command?
      var count = 0
      for line in try DocumentedPage.recipes() {
        if line.hasPrefix("# ") {
          try expect(line, from: try #require(last), home)
          continue
        }
        count += 1
        let command = try await home.run(line)
        last = command
        if home.running.contains(where: { $0 === command }) { continue }
        #expect(command.end == .exited(0), "\(line)\n\(command.output)\(command.errors)")
      }
      #expect(count >= 9 && home.running.count == 2)
      gallery.expectSame(as: Folder(home.path + "/nas/2026"))
      #expect(Set(home.bucket.objects.keys) == sent)
      #expect(Set(home.cloud.names().map(\.description)).isSuperset(of: sent))
      for name in gallery.files().keys {
        let bytes = FileManager.default.contents(atPath: "\(gallery.path)/\(name)")
        #expect(home.bucket.objects["2026/\(name)"].map { Data($0.bytes) } == bytes, "\(name)")
      }
      try await home.stop()
    }

    /// Expects that the last line that a command has printed is that of the page, but for numbers. `line` begins with "# ".
    private func expect(_ line: some StringProtocol, from command: Command, _ home: DocumentedHome) throws {
      let printed = try #require(command.output.split(separator: "\n").last, "\(command.name)\n\(command.errors)")
      #expect(withoutNumbers(String(printed)) == withoutNumbers(home.replaced(line.dropFirst(2))))
    }

    /// A command with what a mention in running text leaves out: its operands, and the key of `unseal`.
    private static func completed(_ words: [String]) -> [String] {
      let sources = ["DCIM/", "http://127.0.0.1:1/"]
      let operands = [
        "push": sources, "check": sources, "watch": sources, "serve": ["photos"], "abort": ["--all"],
        "doctor": ["nas:"],
      ]
      var words = words
      if words.dropFirst().allSatisfy({ $0.hasPrefix("-") }) { words += operands[words[0]] ?? [] }
      if words[0] == "unseal", !words.contains("-i") { words += ["-i", "key.txt"] }
      return words
    }
  }
}

/// A text in which N stands for each number, without the speed.
func withoutNumbers(_ text: String) -> String {
  text.replacing(/[0-9]+([.,][0-9]+)*/, with: "N").replacing(#/ \(N ([KMG]i)?B/s\)/#, with: "")
}
