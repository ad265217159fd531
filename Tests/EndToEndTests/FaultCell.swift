/// A result of one fault with one protocol.
struct FaultCell: Sendable {
  let status: Int32
  /// nil: nothing was written to standard error.
  let message: FaultMessage?
  /// The state in the journal.
  let here: String
  /// The state at the server; nil for a scripted server.
  let there: String?

  /// The text in the table. `number`: that of the message in the list below the table.
  func text(number: (String) -> Int) -> String {
    var lines = ["exit \(status)"]
    if let message {
      lines[0] += ": **\(number(message.text))**"
      lines[0] += message.request.isEmpty ? "" : " of `\(message.request)`"
      lines[0] += message.isRepeated ? ", tried again" : ""
    }
    lines.append("here: \(here)")
    if let there { lines.append("there: \(there)") }
    return lines.joined(separator: "<br>")
  }
}

/// A message of the program, without the parts that say in which request it failed.
struct FaultMessage: Sendable {
  /// The method and the path; empty: the message names no request.
  private(set) var request = ""
  /// Whether the message says that the request was repeated.
  let isRepeated: Bool
  let text: String

  init(_ line: String) {
    var rest = Substring(line)
    for begin in ["fullbore: ", "video.mov: "] where rest.hasPrefix(begin) { rest = rest.dropFirst(begin.count) }
    if let match = rest.prefixMatch(of: #/([A-Z]+ )https?://[^/ ]+(/[^ ]*): /#) {
      request = "\(match.1)\(match.2)"
      rest = rest[match.range.upperBound...]
    }
    let repetition = " (gave up after 2 failures in a row)"
    isRepeated = rest.contains(repetition)
    text = String(rest).replacing(repetition, with: "")
  }
}

/// The messages of a page, numbered from 1 in the order in which they are first asked for.
struct FaultMessages {
  private(set) var texts: [String] = []

  mutating func number(of text: String) -> Int {
    if let index = texts.firstIndex(of: text) { return index + 1 }
    texts.append(text)
    return texts.count
  }
}
