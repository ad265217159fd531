import Foundation

/// A struct, class or actor, or an extension, as its declaration is written.
struct DeclaredType: Equatable {
  let kind: String
  /// With the types around it.
  let name: String
  /// The number of its stored properties, static ones left out.
  var stored = 0
  /// The number of braces around its members.
  fileprivate var depth = 0
}

extension SourceFile {
  /// The types that this file declares.
  var types: [DeclaredType] { declarations.filter { $0.kind != "extension" } }

  /// The types that this file declares or extends. It counts braces and words, which suffices for code that the formatter has
  /// laid out.
  var declarations: [DeclaredType] {
    var (found, open): ([DeclaredType], [DeclaredType]) = ([], [])
    var pending: (kind: String, name: String)?
    var (depth, isText) = (0, false)
    for (number, line) in lines.enumerated() {
      if line.components(separatedBy: "\"\"\"").count.isMultiple(of: 2) { isText.toggle() }
      if isText { continue }
      let code = Self.code(of: line)
      let words = Self.words(of: code)
      if let keyword = words.firstIndex(where: { !Self.declarationModifiers.contains($0) }) {
        if ["struct", "class", "actor", "extension"].contains(words[keyword]), keyword + 1 < words.count,
          !["func", "var", "let"].contains(words[keyword + 1])
        {
          pending = (words[keyword], words[keyword + 1])
        } else if ["var", "let"].contains(words[keyword]), open.last?.depth == depth, isStored(code, at: number) {
          open[open.count - 1].stored += Self.names(in: code, after: words[keyword])
        }
      }
      let opened = code.count { $0 == "{" }
      if opened > 0, let (kind, name) = pending {
        let path = (open.map { $0.name.split(separator: ".").last.map(String.init) ?? "" } + [name]).joined(
          separator: ".")
        open.append(DeclaredType(kind: kind, name: path, depth: depth + 1))
        pending = nil
      }
      depth += opened - code.count { $0 == "}" }
      while let last = open.last, depth < last.depth {
        found.append(last)
        open.removeLast()
      }
    }
    return found
  }

  /// Whether a property has no getter. Observers may be on the next line.
  private func isStored(_ code: String, at number: Int) -> Bool {
    guard let brace = code.firstIndex(of: "{") else { return true }
    if code[..<brace].contains("=") { return true }
    let next = number + 1 < lines.count ? Self.words(of: lines[number + 1]).first : nil
    return next == "didSet" || next == "willSet"
  }

  /// The number of properties that a line declares: `let a = 1`, `let a: Int, b: Int` or `let (a, b) = (1, 2)`.
  private static func names(in code: String, after keyword: String) -> Int {
    guard let start = code.range(of: keyword + " ")?.upperBound else { return 1 }
    let rest = code[start...]
    if rest.first == "(" { return rest.prefix { $0 != ")" }.count { $0 == "," } + 1 }
    if rest.contains(where: { "(<[".contains($0) }) { return 1 }
    return 1 + rest.ranges(of: /,\s*\w+\s*[:=]/).count
  }

  /// A line without its comment and the content of its string literals.
  private static func code(of line: String) -> String {
    let code = line.replacing(/"(\\.|[^"\\])*"/, with: "")
    return code.range(of: "//").map { String(code[..<$0.lowerBound]) } ?? code
  }

  private static let declarationModifiers: Set = [
    "public", "private", "fileprivate", "package", "internal", "open", "final", "indirect", "override", "lazy", "weak",
    "unowned", "nonisolated", "unsafe", "set", "usableFromInline", "frozen", "MainActor", "unchecked",
  ]
}
