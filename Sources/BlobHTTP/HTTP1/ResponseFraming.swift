import Blobs

/// Finds the head and the content in the bytes of a response. The content is delimited by length, by chunks or by the
/// end of the connection. RFC 9112 §6.3 and §7.1.
package struct ResponseFraming {
  package enum Stage: Equatable {
    case head, content(Int64), chunks(ChunkedDecoder), trailers, untilClosed, whole
  }
  /// The kind of the next bytes. The associated number is their count.
  package enum Piece: Equatable {
    /// A line of the head or the trailers, including its line break.
    case line(Int)
    case content(Int)
    /// Bytes of the chunked coding outside the content.
    case framing(Int)
    /// The parser needs more bytes.
    case more
    /// A line of the head or the trailers has more than `longestLine` bytes.
    case lineTooLong
    /// The lines of one head, or of the trailers, have more than `longestSection` bytes.
    case sectionTooLong
    case malformed
  }

  package private(set) var stage = Stage.head
  /// The response has ended. Other modules read this for every response, where comparing `stage` would be slower.
  package var isWhole: Bool { if case .whole = stage { true } else { false } }
  package var isInHead: Bool { if case .head = stage { true } else { false } }
  /// Whether the server allows reuse of the connection after this response.
  package private(set) var keepsConnection = false
  private var isFirstLine = true
  /// Bytes of the current head or trailers. Each interim head counts separately, because a server may send one for each
  /// megabyte that it has received.
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

  /// Derives the framing of the content from the final head. Returns false if the framing cannot be determined.
  package mutating func begin(_ head: HTTPHead, to method: String) -> Bool {
    let codings = head.headers.fields.filter { $0.name.isSameField("Transfer-Encoding") }
    // Most responses have no other value, and splitting a list costs more than the rest of this function.
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
      // Chunks and Content-Length contradict each other, so bytes after this response may belong to it. RFC 9112 §6.3.
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

  /// nil if the values differ or are not numbers.
  private static func length(in headers: HTTPHeaders) -> Int64? {
    var found: Int64?
    for (name, value) in headers.fields where name.isSameField("Content-Length") {
      // Some proxies join repeated fields into a list of the same number. RFC 9110 §8.6.
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
    isFirstLine = isEmpty  // Another head follows an interim head.
    return .line(end)
  }

  private func line(_ bytes: UnsafeRawBufferPointer) -> Int? { bytes.place(of: 10).map { $0 + 1 } }

  private func more(than bytes: UnsafeRawBufferPointer) -> Piece {
    // Input that cannot become a head is refused before its line is complete.
    let begins = stage != .head || !isFirstLine || bytes.isEmpty || "HTTP/1.".utf8.starts(with: bytes.prefix(7))
    if !begins { return .malformed }
    return bytes.count < Self.longestLine ? .more : .lineTooLong
  }

  /// Limits in bytes for one line, and for all lines of a head or of the trailers.
  package static let longestLine = 16 << 10
  package static let longestSection = 256 << 10
}
