/// Incremental parser for requests: heads, content and trailers, one request after the other. It accepts only what RFC
/// 9112 allows: if two programs can read a request in different ways, an attacker can hide a second request in it
/// (request smuggling, RFC 9112 §11.2).
package struct RequestParser {
  /// The kind of the next bytes. The associated number is their count.
  package enum Piece {
    /// The parser needs more bytes, appended to those of this call.
    case more
    /// A line of a head, or bytes of the chunked coding.
    case framing(Int)
    /// The last line of a head. A body follows if the head says so.
    case head(Int, RequestHead)
    case content(Int)
    /// The body is complete. `trailers` are the fields after its last chunk.
    case end(Int, trailers: HTTPHeaders)
    case malformed(RequestProblem)
  }
  private enum Stage {
    case line, fields, content(Int64), chunks(ChunkedDecoder), trailers
  }

  private var stage = Stage.line
  private var head = RequestHead(method: "", target: [], isHTTP11: true, headers: [:])
  private var trailers = HTTPHeaders()
  /// Bytes of the current head or trailer section so far.
  private var sectionBytes = 0
  /// Bytes of an incomplete line that were already searched for a line break.
  private var searched = 0

  /// Limits in bytes for the request line, for a whole head, and for a trailer section.
  package static let longestLine = 16 << 10
  package static let longestHead = 32 << 10
  package static let longestTrailers = 8 << 10
  /// The most fields of a head, and of a trailer section. A field takes far more memory than its shortest line.
  package static let mostFields = 200

  package init() {}

  /// The method of the current request; empty before its request line is complete.
  package var method: String { if case .line = stage { "" } else { head.method } }
  /// True if no byte of the next request has arrived.
  package var isBetweenRequests: Bool { if case .line = stage { sectionBytes == 0 && searched == 0 } else { false } }

  /// Bytes of contiguous content that follow; 0 if there are none or their number is unknown.
  package var contentAhead: Int64 {
    switch stage {
    case .content(let left): return left
    case .chunks(let decoder): if case .data(let left) = decoder.stage { return left } else { return 0 }
    case .line, .fields, .trailers: return 0
    }
  }

  /// Skips the next `count` bytes of content, at most `contentAhead`, which need not be inspected. Returns true if they
  /// complete the body.
  package mutating func take(_ count: Int) -> Bool {
    switch stage {
    case .content(let left):
      stage = .content(left - Int64(count))
      if left > Int64(count) { return false }
      begin()
      return true
    case .chunks(var decoder):
      decoder.take(count)
      stage = .chunks(decoder)
      return false
    case .line, .fields, .trailers: preconditionFailure("no content is expected here")
    }
  }

  /// `bytes` are those not yet consumed. A request without a body yields `head` and no `end`.
  package mutating func next(of bytes: UnsafeRawBufferPointer) -> Piece {
    do throws(RequestProblem) {
      switch stage {
      case .line, .fields, .trailers: return try line(of: bytes)
      case .content(let left):
        if left == 0 {
          begin()
          return .end(0, trailers: [:])
        }
        let count = Int(clamping: min(left, Int64(bytes.count)))
        stage = .content(left - Int64(count))
        return count == 0 ? .more : .content(count)
      case .chunks(var decoder):
        let piece = decoder.next(of: bytes)
        stage = decoder.stage == .ended ? .trailers : .chunks(decoder)
        switch piece {
        case .content(let count): return .content(count)
        case .framing(let count): return .framing(count)
        case .more: return .more
        case .malformed: throw RequestProblem(400, "the lines between the chunks of the body are malformed")
        }
      }
    } catch {
      return .malformed(error)
    }
  }

  private mutating func begin() {
    stage = .line
    (sectionBytes, searched) = (0, 0)
  }

  // MARK: Lines

  private mutating func line(of bytes: UnsafeRawBufferPointer) throws(RequestProblem) -> Piece {
    let new = UnsafeRawBufferPointer(rebasing: bytes[min(searched, bytes.count)...])
    guard let place = new.place(of: 10) else {
      try check(bytes.count)
      searched = bytes.count
      return .more
    }
    let end = bytes.count - new.count + place
    try check(end + 1)
    searched = 0
    sectionBytes += end + 1
    guard end > 0, bytes[end - 1] == 13 else { throw Self.brokenLine }
    let line = UnsafeRawBufferPointer(rebasing: bytes[..<(end - 1)])
    if line.place(of: 13) != nil || line.place(of: 0) != nil { throw Self.brokenLine }
    return try take(line, end + 1)
  }

  private static let brokenLine = RequestProblem(
    400, "a line of the request has a NUL or a CR in it, or does not end with CRLF")

  /// Throws if a line of at least `count` bytes exceeds the limit.
  private func check(_ count: Int) throws(RequestProblem) {
    switch stage {
    case .line where count > Self.longestLine:
      throw RequestProblem(414, "the request line has more than \(Self.longestLine) bytes")
    case .trailers where sectionBytes + count > Self.longestTrailers:
      throw RequestProblem(431, "the trailers have more than \(Self.longestTrailers) bytes")
    case .line, .fields:
      if sectionBytes + count > Self.longestHead {
        throw RequestProblem(431, "the head of the request has more than \(Self.longestHead) bytes")
      }
    default: break
    }
  }

  private mutating func take(_ line: UnsafeRawBufferPointer, _ count: Int) throws(RequestProblem) -> Piece {
    switch stage {
    case .line:
      // RFC 9112 §2.2: empty lines before a request are ignored.
      if line.isEmpty { return .framing(count) }
      let first = try RequestLine(line)
      head = RequestHead(method: first.method, target: first.target, isHTTP11: first.isHTTP11, headers: [:])
      head.headers.reserve(8)
      stage = .fields
    case .fields:
      if line.isEmpty { return .head(count, try endOfHead()) }
      head.headers.add(try Self.field(line, after: head.headers))
    case .trailers:
      if line.isEmpty {
        defer { trailers = HTTPHeaders() }
        begin()
        return .end(count, trailers: trailers)
      }
      trailers.add(try Self.field(line, after: trailers))
    case .content, .chunks: preconditionFailure("content has no lines")
    }
    return .framing(count)
  }

  private static func field(
    _ line: UnsafeRawBufferPointer, after others: HTTPHeaders
  ) throws(RequestProblem) -> FieldLine {
    if others.fields.count == mostFields { throw RequestProblem(431, "the request has more than \(mostFields) fields") }
    guard let field = FieldLine(line) else {
      throw RequestProblem(
        400, "a line of the request is no field: a name that is a token, and a colon directly behind it")
    }
    if field.value.hasControlCharacter {
      let name = String(decoding: field.name.prefix(100), as: UTF8.self)
      throw RequestProblem(400, "the field \(name) has a control character in it")
    }
    // Some programs would not recognize a padded value as `chunked`.
    let isPadded = line.last == 32 || line.last == 9
    if isPadded, String(decoding: field.name, as: UTF8.self).isSameField("Transfer-Encoding") {
      throw RequestProblem(400, "the transfer coding has a blank behind it")
    }
    return field
  }

  private mutating func endOfHead() throws(RequestProblem) -> RequestHead {
    try head.findLength()
    sectionBytes = 0
    switch head.contentLength {
    case nil: stage = .chunks(ChunkedDecoder())
    case 0: begin()
    case let length?: stage = .content(length)
    }
    defer { head.headers = HTTPHeaders() }
    return head
  }
}
