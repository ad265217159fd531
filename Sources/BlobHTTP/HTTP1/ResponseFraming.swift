import Blobs

/// Where an answer that is read from a connection stands: its head, then content by length, by chunks or up to the end.
/// RFC 9112 §6.3 and §7.1.
package struct ResponseFraming {
  package enum Stage: Equatable {
    case head, content(Int64), chunks(ChunkedDecoder), trailers, untilClosed, whole
  }
  /// The next bytes of what came, by their number.
  package enum Piece: Equatable {
    /// Of the head or the trailers, with its line break.
    case line(Int)
    case content(Int)
    /// What only says where content is.
    case framing(Int)
    /// It needs more bytes.
    case more
    /// A line of the head or the trailers has more than `longestLine` bytes.
    case lineTooLong
    /// The lines of one head, or those of the trailers, have more than `longestSection` bytes.
    case sectionTooLong
    case malformed
  }

  package private(set) var stage = Stage.head
  /// The answer has ended. Asked for every answer, from other modules, where comparing stages takes more.
  package var isWhole: Bool { if case .whole = stage { true } else { false } }
  package var isInHead: Bool { if case .head = stage { true } else { false } }
  /// Whether the server lets the connection be used again once the answer is whole.
  package private(set) var keepsConnection = false
  private var isFirstLine = true
  /// Bytes of the head or the trailers so far. Each interim head counts for itself: a server may send one for each megabyte
  /// that it has received.
  private var sectionBytes = 0

  package init() {}

  package mutating func next(of bytes: UnsafeRawBufferPointer) -> Piece {
    switch stage {
    case .whole: return .malformed
    case .head, .trailers: return headLine(bytes)
    case .untilClosed: return bytes.isEmpty ? .more : .content(bytes.count)
    case .content(let left):
      let count = Int(clamping: min(left, Int64(bytes.count)))
      if count == 0 { return .more }
      stage = left == Int64(count) ? .whole : .content(left - Int64(count))
      return .content(count)
    case .chunks(var decoder):
      let piece = decoder.next(of: bytes)
      stage = decoder.stage == .ended ? .trailers : .chunks(decoder)
      switch piece {
      case .content(let count): return .content(count)
      case .framing(let count): return .framing(count)
      case .more: return .more
      case .malformed: return .malformed
      }
    }
  }

  /// The final head is known: what follows it? false: nobody can say.
  package mutating func begin(_ head: HTTPHead, to method: String) -> Bool {
    let codings = head.headers.fields.filter { $0.name.isSameField("Transfer-Encoding") }
    // Most name nothing else, and a list takes more work than all of the rest.
    let isPlain = head.headers.fields.allSatisfy {
      !$0.name.isSameField("Connection") || $0.value.isSameField("keep-alive")
    }
    if !isPlain, head.headers.list("Connection").contains(where: { $0.isSameField("close") }) {
      keepsConnection = false
    }
    if method == "HEAD" || head.status == 204 || head.status == 304 {
      stage = .whole
    } else if !codings.isEmpty {
      guard codings.count == 1, codings[0].value.isSameField("chunked") else { return false }
      // Two statements about the length: what follows on this connection may be part of what went before. RFC 9112 §6.3.
      if head.headers["Content-Length"] != nil { keepsConnection = false }
      stage = .chunks(ChunkedDecoder())
    } else if head.headers["Content-Length"] != nil {
      guard let length = Self.length(in: head.headers) else { return false }
      stage = length == 0 ? .whole : .content(length)
    } else {
      keepsConnection = false
      stage = .untilClosed
    }
    return head.status >= 200
  }

  /// nil: several that differ, or no number.
  private static func length(in headers: HTTPHeaders) -> Int64? {
    var found: Int64?
    for (name, value) in headers.fields where name.isSameField("Content-Length") {
      // A list of the same number, again and again, is what some proxies make of several fields. RFC 9110 §8.6.
      guard let length = Int64(digits: value) ?? same(value), found ?? length == length else { return nil }
      found = length
    }
    return found
  }

  private static func same(_ list: String) -> Int64? {
    let numbers = Set(list.split(separator: ",").map(\.trimmed).filter { !$0.isEmpty })
    return numbers.count == 1 ? Int64(digits: numbers.first!) : nil
  }

  private mutating func headLine(_ bytes: UnsafeRawBufferPointer) -> Piece {
    guard let end = line(bytes) else { return more(than: bytes) }
    sectionBytes += end
    if sectionBytes > Self.longestSection { return .sectionTooLong }
    let isEmpty = bytes[0] == 10 || (bytes[0] == 13 && end == 2)
    if isEmpty { sectionBytes = 0 }
    if stage == .trailers {
      if isEmpty { stage = .whole }
      return .line(end)
    }
    if isFirstLine {
      guard let line = StatusLine(UnsafeRawBufferPointer(rebasing: bytes[..<end])) else { return .malformed }
      keepsConnection = line.minorVersion > 0
    }
    isFirstLine = isEmpty  // after an interim head comes another
    return .line(end)
  }

  private func line(_ bytes: UnsafeRawBufferPointer) -> Int? { bytes.place(of: 10).map { $0 + 1 } }

  private func more(than bytes: UnsafeRawBufferPointer) -> Piece {
    // What cannot become a head need not end in a line break to be told apart.
    let begins = stage != .head || !isFirstLine || bytes.isEmpty || "HTTP/1.".utf8.starts(with: bytes.prefix(7))
    if !begins { return .malformed }
    return bytes.count < Self.longestLine ? .more : .lineTooLong
  }

  /// In one line, and in all lines of a head or of the trailers.
  package static let longestLine = 16 << 10
  package static let longestSection = 256 << 10
}
