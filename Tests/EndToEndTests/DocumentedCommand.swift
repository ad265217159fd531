import Foundation
import Testing

/// A page of the documentation, and the commands in it.
struct DocumentedPage: CustomTestStringConvertible, Sendable {
  /// Relative to the checkout.
  let name: String

  /// README.md, CONTRIBUTING.md, SECURITY.md and the pages below docs.
  static let all: [DocumentedPage] = {
    let names = (try? FileManager.default.subpathsOfDirectory(atPath: Tool.checkout.path + "/docs")) ?? []
    return ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map { DocumentedPage(name: $0) }
      + names.filter { $0.hasSuffix(".md") }.sorted().map { DocumentedPage(name: "docs/\($0)") }
  }()

  var testDescription: String { name }

  func lines() throws -> [Substring] {
    try String(contentsOf: Tool.checkout.appendingPathComponent(name), encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
  }

  /// The lines of each fenced block, with its language. `heading`: only blocks below it.
  func blocks(below heading: String? = nil) throws -> [(language: Substring, lines: [Substring])] {
    var blocks: [(language: Substring, lines: [Substring])] = []
    var (isOpen, isMeant) = (false, heading == nil)
    for line in try lines() {
      if line.hasPrefix("```") {
        if !isOpen, isMeant { blocks.append((line.dropFirst(3), [])) }
        isOpen.toggle()
      } else if isOpen {
        if isMeant { blocks[blocks.count - 1].lines.append(line) }
      } else if let heading, line.hasPrefix("## ") {
        isMeant = line == "## \(heading)"
      }
    }
    return blocks
  }

  /// Each text that has a command of the program: lines of blocks, indented lines, and the text between backticks.
  func commandTexts() throws -> [Substring] {
    var texts = try runnableLines().map { Substring($0.text) }
    var isOpen = false
    for line in try lines() {
      if line.hasPrefix("```") { isOpen.toggle() }
      if !isOpen { texts += line.matches(of: /`(fullbore [^`]+)`/).map(\.1) }
    }
    return texts
  }

  /// The lines of blocks and the indented lines that have a command of the program, as a shell takes them. `prints`: the
  /// line after it, if that is a comment, which says what the command prints.
  func runnableLines() throws -> [(text: String, prints: String?)] {
    var found: [(text: String, prints: String?)] = []
    var isOpen = false
    var isAfterCommand = false
    for line in try lines() {
      if line.hasPrefix("```") { isOpen.toggle() }
      if isAfterCommand, isOpen, line.hasPrefix("# ") { found[found.count - 1].prints = String(line) }
      isAfterCommand = (isOpen || line.hasPrefix("    ")) && !Self.commands(in: line).isEmpty
      if isAfterCommand {
        found.append((line.trimmingCharacters(in: .whitespaces).replacing(/^(\$ |ExecStart=)/, with: ""), nil))
      }
    }
    return found
  }

  /// The lines of the recipes in the README, with the comments that say what a command prints.
  static func recipes() throws -> [Substring] {
    try DocumentedPage(name: "README.md").blocks(below: "Five recipes").filter { $0.language == "sh" }.flatMap(\.lines)
  }

  /// A command begins the line or follows a prompt, a pipe, `&&`, or the key of a unit of systemd.
  static func commands(in line: Substring) -> [[String]] {
    line.matches(of: /(?:^|\| |&& |^\$ |^ExecStart=) *fullbore (.*)/).flatMap { match in
      // The first of several ends where the next one begins.
      [words(of: match.1)] + commands(in: match.1)
    }.filter { !$0.isEmpty }
  }

  /// The words of a command as a shell reads them, up to its end.
  static func words(of text: Substring) -> [String] {
    var (words, word, quote): ([String], String?, Character?) = ([], nil, nil)
    for character in text {
      if let open = quote {
        if character == open { quote = nil } else { word?.append(character) }
      } else if "'\"".contains(character) {
        (quote, word) = (character, word ?? "")
      } else if character == " " {
        if let word { words.append(word) }
        word = nil
      } else if "|<>&;".contains(character) || character == "#" && word == nil {
        break
      } else {
        word = (word ?? "") + String(character)
      }
    }
    return word.map { words + [$0] } ?? words
  }
}
