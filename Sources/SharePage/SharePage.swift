/// The page with which a browser sends files to the server. Its files are part of the binary.
package enum SharePage {
  /// A file of the page.
  package struct File: Sendable {
    package let bytes: [UInt8]
    /// The media type.
    package let type: String
  }

  /// `page.html` refers to the page's other files by paths that begin with this text. `page(base:)` replaces it with the
  /// relative path from the folder whose URL shows the page to the root.
  private static let placeholder = Array("{{base}}".utf8)
  /// The parts of the page between placeholders.
  private static let parts = pieces(of: PackageResources.page_html)

  /// The page, without any secret. `base`: the relative path from the page's URL to the root, such as `../`.
  package static func page(base: String) -> [UInt8] { Array(parts.joined(separator: base.utf8)) }

  /// The file with this name that the page refers to; nil: there is none.
  package static func file(_ name: String) -> File? { files[name] }

  private static let files = [
    "choose.js": script(PackageResources.choose_js),
    "folder.js": script(PackageResources.folder_js),
    "icon.svg": File(bytes: PackageResources.icon_svg, type: "image/svg+xml"),
    "list.js": script(PackageResources.list_js),
    "memory.js": script(PackageResources.memory_js),
    "names.js": script(PackageResources.names_js),
    "page.css": style(PackageResources.page_css),
    "page.js": script(PackageResources.page_js),
    "queue.js": script(PackageResources.queue_js),
    "rows.js": script(PackageResources.rows_js),
    "server.js": script(PackageResources.server_js),
    "text.js": script(PackageResources.text_js),
    "thumbnails.js": script(PackageResources.thumbnails_js),
    "transfer.js": script(PackageResources.transfer_js),
    "tus.js": script(PackageResources.tus_js),
  ]

  /// A script without its comments, its indentation, and most spaces and line ends outside of texts, which are a fifth of
  /// it together. No text goes on in another line. A comment behind code begins after two spaces, which no text has before
  /// two slashes.
  private static func script(_ bytes: [UInt8]) -> File {
    let lines = lines(bytes).map { line in
      if line.hasPrefix("//") { return "" }
      let code = line.firstRange(of: "  //").map { line[..<$0.lowerBound] } ?? line
      let parts = code.split(separator: "\"", omittingEmptySubsequences: false)
      let pieces = parts.enumerated()
      // In other texts and regular expressions, spaces mean themselves.
      let isOther = pieces.contains { $0.isMultiple(of: 2) && $1.contains { "'`/".contains($0) } }
      if isOther || code.contains("\\") { return String(code) }
      return pieces.map { $0.isMultiple(of: 2) ? squeezed(String($1), aroundAll: operators) : String($1) }
        .joined(separator: "\"")
    }
    var text = lines.filter { !$0.isEmpty }.joined(separator: "\n")
    // No statement ends at these line ends by the end of the line alone, and the last one of a block needs no semicolon.
    for (lineEnd, rest) in [(";\n", ";"), ("{\n", "{"), (",\n", ","), ("\n}", "}"), (";}", "}")] {
      text = text.split(separator: lineEnd, omittingEmptySubsequences: false).joined(separator: rest)
    }
    return File(bytes: Array(text.utf8), type: "text/javascript; charset=utf-8")
  }

  /// A style sheet without its indentation and most of its spaces. It has no texts with spaces.
  private static func style(_ bytes: [UInt8]) -> File {
    let text = squeezed(lines(bytes).joined(), aroundAll: [";", "{", "}", ","])
      .split(separator: ";}", omittingEmptySubsequences: false).joined(separator: "}")
      // Before a colon, a space is a part of a selector.
      .split(separator: ": ", omittingEmptySubsequences: false).joined(separator: ":")
    return File(bytes: Array(text.utf8), type: "text/css; charset=utf-8")
  }

  private static func lines(_ bytes: [UInt8]) -> [Substring] {
    String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.drop { $0 == " " }
    }
  }

  private static let operators = [
    ",", ";", ":", "?", "{", "}", "=", "=>", "===", "!==", "&&", "||", "<", ">", "<=", ">=", "*", "??", "(", ")",
    "[", "]", "+", "-",
  ]

  /// Without the spaces beside these pieces of text.
  private static func squeezed(_ text: String, aroundAll pieces: [String]) -> String {
    var text = text
    for piece in pieces {
      for spaced in [" \(piece) ", "\(piece) ", " \(piece)"] {
        text = text.split(separator: spaced, omittingEmptySubsequences: false).joined(separator: piece)
      }
    }
    return text
  }

  private static func pieces(of page: [UInt8]) -> [[UInt8]] {
    var pieces: [[UInt8]] = [[]]
    var index = 0
    while index < page.count {
      if page[index...].starts(with: placeholder) {
        pieces.append([])
        index += placeholder.count
      } else {
        pieces[pieces.count - 1].append(page[index])
        index += 1
      }
    }
    return pieces
  }
}
