/// The received bytes that a connection parses in one turn.
///
/// The contents of consecutive small chunks are moved together in the buffer, so that the receiver of the body gets them
/// as one piece. Otherwise a body in chunks of one byte would cost one write to a file for each of them, and the other
/// connections of the event loop would wait for all of these.
struct ReceivedBytes {
  private let bytes: UnsafeMutableRawBufferPointer
  /// The number of bytes that the parser has consumed.
  private var parsed = 0
  /// Content that was not handed over yet. It lies before the bytes that are left.
  private var content = 0..<0
  /// Pieces that may still be handed over in this turn.
  private var pieces: Int

  /// Content of at least this many bytes is not moved.
  private static let large = 4 << 10
  /// Handing over a piece, or answering a request, takes much longer than parsing a few bytes.
  static let mostPieces = 32

  init(_ bytes: UnsafeMutableRawBufferPointer, pieces: Int = mostPieces) { (self.bytes, self.pieces) = (bytes, pieces) }

  /// The bytes that are not parsed yet.
  var left: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[parsed...]) }
  /// Whether other connections should have their turn before the rest is parsed.
  var isTurnOver: Bool { pieces <= 0 }

  /// The next `count` bytes are parsed. They are no content.
  mutating func skip(_ count: Int) { parsed += count }

  /// The next `count` bytes are content. Returns earlier content that must be handed over before, if there is any.
  mutating func addContent(_ count: Int) -> UnsafeRawBufferPointer? {
    let earlier = count >= Self.large ? takeContent() : nil
    if content.isEmpty {
      content = parsed..<parsed + count
    } else {
      let end = bytes.baseAddress! + content.upperBound
      if content.upperBound < parsed { end.copyMemory(from: bytes.baseAddress! + parsed, byteCount: count) }
      content = content.lowerBound..<content.upperBound + count
    }
    parsed += count
    return earlier
  }

  /// The content to hand over now; nil if there is none. It is valid until more content is added.
  mutating func takeContent() -> UnsafeRawBufferPointer? {
    if content.isEmpty { return nil }
    defer { content = 0..<0 }
    notePiece()
    return UnsafeRawBufferPointer(rebasing: bytes[content])
  }

  /// A piece was handed over, or a request was processed.
  mutating func notePiece() { pieces -= 1 }
}
