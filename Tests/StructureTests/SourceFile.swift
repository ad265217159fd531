import Foundation

/// A file of source code.
struct SourceFile {
  let target: String
  /// From the root of the repository.
  let path: String
  let lines: [String]

  var isSwift: Bool { path.hasSuffix(".swift") }

  /// `folder`: from the root of the repository.
  static func all(below folder: String = "Sources") throws -> [SourceFile] {
    let sources = root.appending(path: folder)
    guard let listing = FileManager.default.enumerator(atPath: sources.path) else { throw CocoaError(.fileNoSuchFile) }
    return try listing.compactMap { $0 as? String }.sorted().filter { $0.hasSuffix(".swift") || $0.hasSuffix(".h") }
      .map { path in
        let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return SourceFile(target: String(path.prefix { $0 != "/" }), path: "\(folder)/\(path)", lines: lines)
      }
  }

  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Lines, counted from 0, and the module that each of them imports.
  var imports: [(line: Int, module: String)] {
    lines.enumerated().compactMap { number, line in
      let words = Self.words(of: line)
      guard let keyword = words.firstIndex(of: "import") else { return nil }
      let modifiers = words[..<keyword]
      guard modifiers.allSatisfy({ Self.modifiers.contains($0) }) else { return nil }
      let module = words[(keyword + 1)...].first { !Self.kinds.contains($0) }
      return module.map { (number, $0) }
    }
  }

  /// Whether `line` imports Foundation only for where FoundationEssentials is missing.
  func isFallback(line: Int) -> Bool {
    guard line >= 3 else { return false }
    let before = lines[line - 3..<line].map { $0.trimmingCharacters(in: .whitespaces) }
    return Self.words(of: lines[line]) == ["import", "Foundation"]
      && before == ["#if canImport(FoundationEssentials)", "import FoundationEssentials", "#else"]
  }

  /// Identifiers and keywords of a line, its comment left out.
  static func words(of line: String) -> [String] {
    let code = line.range(of: "//").map { line[..<$0.lowerBound] } ?? line[...]
    return code.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
  }

  private static let modifiers: Set = [
    "testable", "_exported", "preconcurrency", "_implementationOnly", "public", "package", "internal", "fileprivate",
    "private",
  ]
  private static let kinds: Set = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]
}
