import Foundation
import Testing

extension EndToEnd {
  /// The recipes of the README, typed into terminals. The screens must equal those in `Tests/Screens/readme.txt`, but for
  /// numbers, speeds and codes. With `FULLBORE_WRITE_DOCS=1` that file is written instead.
  @Suite(.serialized, .needs(.tmux, .age)) struct RecipeScreenTests {
    private static let file = Tool.checkout.appendingPathComponent("Tests/Screens/readme.txt")

    @Test func theScreensOfTheRecipesAreThoseKept() async throws {
      let home = try await DocumentedHome(places: ["cloud"])
      func terminal() async throws -> EmulatedTerminal {
        try await .shell(in: home.path, width: 100, rows: 50, environment: home.environment, in: home.scratch)
      }
      let client = try await terminal()
      var servers: [EmulatedTerminal] = []
      var prompts = 1
      for line in try DocumentedPage.recipes() where !line.hasPrefix("#") {
        let typed = home.replaced(line)
        if line.contains("fullbore serve") {
          let server = try await terminal()
          try await server.type(typed)
          _ = try await server.lines("\(typed) runs") { $0.contains { $0.contains("Receiving into ") } }
          servers.append(server)
        } else {
          try await client.type(typed)
          prompts += 1
          _ = try await client.lines("\(typed) has ended") { lines in
            lines.last == "$" && lines.count { $0.hasPrefix("$") } == prompts
          }
        }
      }
      #expect(servers.count == 2 && prompts >= 8)
      for server in servers {
        try await server.pressControlC()
        _ = try await server.lines("the server ends") { $0.last?.hasSuffix("$") == true }
      }
      var screens: [String] = []
      for terminal in [client] + servers {
        screens.append(Self.readable(try await terminal.lines(joined: true), home))
        try await terminal.end()
      }
      let text = screens.joined(separator: "\n")
      if ProcessInfo.processInfo.environment["FULLBORE_WRITE_DOCS"] == "1" {
        try text.write(to: Self.file, atomically: true, encoding: .utf8)
      }
      let kept = try String(contentsOf: Self.file, encoding: .utf8)
      let advice = "FULLBORE_WRITE_DOCS=1 swift test --filter RecipeScreenTests writes the file"
      #expect(
        text.split(separator: "\n", omittingEmptySubsequences: false)
          == kept.split(separator: "\n", omittingEmptySubsequences: false), "\(advice)")
    }

    /// The lines without what differs between runs.
    private static func readable(_ lines: [String], _ home: DocumentedHome) -> String {
      var text: [String] = []
      for line in lines {
        let isCode = line.contains { "█▀▄".contains($0) }
        if isCode, text.last == "  [QR code]" { continue }
        let line = line.replacingOccurrences(of: home.path, with: "~").replacing("^C", with: "")
          .replacing(/\/#[a-z0-9-]+/, with: "/#CODE")
        text.append(isCode ? "  [QR code]" : withoutNumbers(line))
      }
      return text.joined(separator: "\n") + "\n"
    }
  }
}
