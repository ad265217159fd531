import Platform

/// What the terminal can show, by the environment.
struct TerminalStyle: Sendable, Hashable {
  /// The locale's character encoding is UTF-8.
  var isUnicode = true
  /// Colors are allowed (https://no-color.org).
  var hasColor = true

  init(isUnicode: Bool = true, hasColor: Bool = true) {
    self.isUnicode = isUnicode
    self.hasColor = hasColor
  }

  /// The style by the environment of this process.
  static var ofEnvironment: TerminalStyle { TerminalStyle { environment($0)?.description } }

  /// The style by the variables that `value` returns. As in POSIX, the first locale variable that is not empty counts.
  init(_ value: (String) -> String?) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(value).first { !$0.isEmpty } ?? ""
    let encoding = locale.lowercased()
    isUnicode = encoding.contains("utf-8") || encoding.contains("utf8")
    hasColor = (value("NO_COLOR") ?? "").isEmpty
  }

  /// A bar of `width` columns that is filled by `share`, which is from 0 to 1.
  func bar(_ share: Double, width: Int) -> String {
    let filled = Int((min(max(share, 0), 1) * Double(width)).rounded(.down))
    let done = String(repeating: isUnicode ? "━" : "#", count: filled)
    let rest = String(repeating: isUnicode ? "─" : "-", count: width - filled)
    return hasColor ? "\u{1B}[32m\(done)\u{1B}[2;39m\(rest)\u{1B}[0m" : done + rest
  }

  /// `text` in the color of failures.
  func failure(_ text: String) -> String { hasColor ? "\u{1B}[31m\(text)\u{1B}[0m" : text }
}

/// What draws `lines` at the bottom of a terminal, from the first column on. The cursor stays on the first of them. When a
/// terminal is resized and wraps its lines anew, it keeps the cursor on that line, so that the next drawing finds the begin of
/// the last one. Without automatic wrapping a line takes one row, even if the terminal has become narrower a moment ago.
func board(of lines: [String]) -> String {
  "\u{1B}[?7l" + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[?7h\u{1B}[J\u{1B}[\(lines.count)A"
}

func padded(_ text: String, _ width: Int) -> String {
  String(repeating: " ", count: max(0, width - text.count)) + text
}

/// `text` truncated to `width` columns, with `…` in place of the missing part.
func fitted(_ text: String, _ width: Int) -> String {
  if columns(of: text) <= width { return text }
  var result = ""
  var used = 0
  for character in text {
    let columns = columns(of: String(character))
    if used + columns > width - 1 { break }
    result.append(character)
    used += columns
  }
  return width > 0 ? result + "…" : ""
}

/// `text` in lines of `width` columns, which are divided between words; the last of `most` lines is truncated.
func wrapped(_ text: String, _ width: Int, most: Int) -> [String] {
  var lines = [""]
  for word in text.split(separator: " ") {
    let longer = lines[lines.count - 1].isEmpty ? String(word) : lines[lines.count - 1] + " " + word
    if columns(of: longer) <= width || lines.count == most || lines[lines.count - 1].isEmpty {
      lines[lines.count - 1] = longer
    } else {
      lines.append(String(word))
    }
  }
  return lines.map { fitted($0, width) }
}

/// Columns of `text` in a terminal: two for wide East Asian characters and emoji, none for combining marks.
func columns(of text: String) -> Int {
  text.reduce(0) { sum, character in
    guard let scalar = character.unicodeScalars.first else { return sum }
    switch scalar.value {
    case 0x300...0x36F, 0x200B...0x200F, 0xFE00...0xFE0F: return sum
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
      0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return sum + 2
    default: return sum + 1
    }
  }
}
