import Platform

/// Incremental parser for a form body, which arrives in pieces of any size. RFC 7578, RFC 2046 §5.1.1.
///
/// It buffers only the header block of one part. Not thread-safe.
package final class MultipartParser {
  package enum Event {
    /// A part begins.
    case part(MultipartHead)
    /// At least one byte of the part's content, valid until the next call.
    case bytes(UnsafeRawBufferPointer)
    /// The part is complete: the whole boundary line after its content was read.
    case end
  }
  package struct Limits: Sendable {
    /// Bytes of one part's header block.
    package var head = 16 << 10
    package var parts = 1000
    /// Bytes before the first boundary, which are ignored.
    package var preamble = 16 << 10

    package init() {}
  }

  private enum State {
    case preamble
    /// After a boundary, while reading the two bytes that end the line or the form.
    case boundary(Tail)
    case head
    case content
    case epilogue
  }
  private enum Tail { case start, padding, dash, carriageReturn }

  private var state = State.preamble
  /// CRLF, two hyphens and the boundary. CR occurs only as the first byte.
  private let delimiter: UnsafeMutableRawBufferPointer
  /// Bytes of the delimiter matched so far. Starts at 2, because the first boundary may lack its CRLF.
  private var matched = 2
  private var head: [UInt8] = []
  private var parts = 0
  private var preamble = 0
  private let limits: Limits

  package init(boundary: some Collection<UInt8>, _ limits: Limits = Limits()) {
    let bytes = Array("\r\n--".utf8) + Array(boundary)
    delimiter = .allocate(byteCount: bytes.count, alignment: 1)
    delimiter.copyBytes(from: bytes)
    self.limits = limits
  }

  deinit { delimiter.deallocate() }

  /// The next event in `bytes`, which is advanced past the bytes read; nil if more bytes are needed. After a throw the
  /// parser cannot be used any more.
  package func next(_ bytes: inout UnsafeRawBufferPointer) throws(MultipartError) -> Event? {
    while !bytes.isEmpty {
      switch state {
      case .preamble: try skipPreamble(&bytes)
      case .boundary(let tail): if try follow(tail, Self.pop(&bytes)) { return .end }
      case .head: if let head = try readHead(&bytes) { return .part(head) }
      case .content: if let content = readUntilDelimiter(&bytes) { return .bytes(content) }
      case .epilogue: bytes = UnsafeRawBufferPointer(rebasing: bytes[bytes.endIndex...])
      }
    }
    return nil
  }

  /// Call at the end of the body. Throws if the form is incomplete.
  package func finish() throws(MultipartError) {
    if case .epilogue = state { return }
    throw MultipartError(
      parts == 0 ? "the body has no boundary" : "the form is cut off: its closing boundary is missing")
  }

  // MARK: Boundaries

  private func skipPreamble(_ bytes: inout UnsafeRawBufferPointer) throws(MultipartError) {
    let before = bytes.count
    _ = readUntilDelimiter(&bytes)
    preamble += before - bytes.count
    if preamble > limits.preamble + delimiter.count {
      throw MultipartError("the body does not begin with its boundary")
    }
  }

  /// Reads a byte after the boundary. Returns true if a part ends here, which is known only when the boundary line is
  /// complete.
  private func follow(_ tail: Tail, _ byte: UInt8) throws(MultipartError) -> Bool {
    let isInPart = parts > 0
    switch (tail, byte) {
    case (.start, UInt8(ascii: "-")): state = .boundary(.dash)
    case (.dash, UInt8(ascii: "-")):
      state = .epilogue
      return isInPart
    // Blanks that a mail program may have added (transport-padding). RFC 2046 §5.1.1.
    case (.start, UInt8(ascii: " ")), (.padding, UInt8(ascii: " ")), (.start, 9), (.padding, 9):
      state = .boundary(.padding)
    case (.start, 13), (.padding, 13): state = .boundary(.carriageReturn)
    case (.carriageReturn, 10):
      parts += 1
      head = []
      state = .head
      return isInPart
    default: throw MultipartError("a line begins with the boundary and does not end after it with CRLF")
    }
    return false
  }

  // MARK: Heads

  private func readHead(_ bytes: inout UnsafeRawBufferPointer) throws(MultipartError) -> MultipartHead? {
    if parts > limits.parts { throw MultipartError(413, "a form may have \(limits.parts) parts at most") }
    while !bytes.isEmpty {
      let byte = Self.pop(&bytes)
      if byte == 10, head.last != 13 { throw MultipartError("a line of a part's head ends with a bare LF") }
      if byte != 10, head.last == 13 { throw MultipartError("a line of a part's head has a bare CR in it") }
      head.append(byte)
      // An empty line ends the header block, even if it is the first line. The bytes are compared in place: a slice of
      // `head` would make the next append copy the whole array.
      let count = head.count
      if byte == 10, count == 2 || (count >= 4 && head[count - 4] == 13 && head[count - 3] == 10) {
        state = .content
        matched = 0
        defer { head = [] }
        return try MultipartHead(head)
      }
      if head.count >= limits.head {
        throw MultipartError(431, "the head of a part is longer than \(limits.head) bytes")
      }
    }
    return nil
  }

  // MARK: Content

  /// Bytes that are certainly not part of a delimiter; nil if there are none. After a complete delimiter `state` has
  /// changed.
  private func readUntilDelimiter(_ bytes: inout UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    if matched > 0 {
      while matched < delimiter.count, bytes.first == delimiter[matched] {
        _ = Self.pop(&bytes)
        matched += 1
      }
      if matched < delimiter.count, bytes.isEmpty { return nil }
      defer { matched = 0 }
      if matched < delimiter.count { return UnsafeRawBufferPointer(rebasing: delimiter[..<matched]) }
      state = .boundary(.start)
      return nil
    }
    var start = 0
    while let found = memchr(bytes.baseAddress! + start, 13, bytes.count - start) {
      let place = UnsafeRawPointer(found) - bytes.baseAddress!
      let count = zip(bytes[place...], delimiter).prefix { $0 == $1 }.count
      if count < delimiter.count, place + count < bytes.count {
        start = place + count
        continue
      }
      matched = count
      let content = UnsafeRawBufferPointer(rebasing: bytes[..<place])
      bytes = UnsafeRawBufferPointer(rebasing: bytes[(place + count)...])
      return content.isEmpty ? readUntilDelimiter(&bytes) : content
    }
    defer { bytes = UnsafeRawBufferPointer(rebasing: bytes[bytes.endIndex...]) }
    return bytes
  }

  private static func pop(_ bytes: inout UnsafeRawBufferPointer) -> UInt8 {
    let first = bytes[0]
    bytes = UnsafeRawBufferPointer(rebasing: bytes[1...])
    return first
  }
}
