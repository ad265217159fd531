#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A netrc file: user and password by host. The format is that of ftp(1), with quoted words as in curl.
///
/// Only the entry of the requested host is used, and only for the destination's own origin.
struct Netrc: Sendable {
  struct Login: Sendable, Hashable {
    var user = ""
    var password = ""
  }

  private var machines: [(host: String?, login: Login)] = []

  /// Unknown words are ignored, as in other implementations.
  init(_ text: String) {
    var words = Words(text)
    while let word = words.next() {
      switch word {
      case "machine": if let host = words.next() { machines.append((host.lowercased(), Login())) }
      case "default": machines.append((nil, Login()))
      case "login": if let value = words.next() { update { $0.user = value } }
      case "password": if let value = words.next() { update { $0.password = value } }
      case "account": _ = words.next()
      // A macro ends at an empty line.
      case "macdef": words.skipMacro()
      default: break
      }
    }
  }

  /// The first entry for the host, else `default`; nil if there is neither.
  func login(for host: String) -> Login? {
    (machines.first { $0.host == host.lowercased() } ?? machines.first { $0.host == nil })?.login
  }

  /// Whether it has an entry for the host by its name.
  func names(_ host: String) -> Bool { machines.contains { $0.host == host.lowercased() } }

  private mutating func update(_ change: (inout Login) -> Void) {
    if !machines.isEmpty { change(&machines[machines.count - 1].login) }
  }

  /// Splits the text into words separated by whitespace. A word in `"…"` may contain whitespace; within it `\` escapes
  /// the next character. A line that starts with `#` is a comment.
  private struct Words {
    private var rest: Substring
    private var isLineStart = true

    init(_ text: String) { rest = text[...] }

    mutating func next() -> String? {
      while let first = rest.first, first.isWhitespace || first == "#" && isLineStart {
        if first == "#" {
          rest = rest.drop { !$0.isNewline }
        } else {
          if first.isNewline { isLineStart = true }
          rest.removeFirst()
        }
      }
      isLineStart = false
      guard let first = rest.first else { return nil }
      let isQuoted = first == "\""
      if isQuoted { rest.removeFirst() }
      var word = ""
      while let character = rest.first, isQuoted ? character != "\"" : !character.isWhitespace {
        rest.removeFirst()
        let escaped = isQuoted && character == "\\" ? rest.popFirst() : nil
        word.append(escaped ?? character)
      }
      if isQuoted, !rest.isEmpty { rest.removeFirst() }
      return word
    }

    mutating func skipMacro() {
      while !rest.isEmpty {
        rest = rest.drop { !$0.isNewline }.dropFirst()
        if rest.first?.isNewline ?? true { return }
      }
    }
  }
}

extension Netrc.Login {
  /// The value for `Authorization`. RFC 7617.
  var basic: String { "Basic " + Data("\(user):\(password)".utf8).base64EncodedString() }
}
