/// Decodes the chunked body of a request or a response, up to its trailer section. RFC 9112 §7.1.
///
/// Lines must end with CRLF: a program that also accepts a bare LF would see different chunks.
package struct ChunkedDecoder: Equatable, Sendable {
  package enum Stage: Equatable, Sendable {
    case size, data(Int64), dataEnd
    /// The last chunk was read; the trailer section follows.
    case ended
  }
  /// The kind of the next bytes. The associated number is their count.
  package enum Piece: Equatable {
    case content(Int)
    /// Bytes outside the content: the size line of a chunk, or the line break after its data.
    case framing(Int)
    /// The decoder needs more bytes.
    case more
    case malformed
  }

  package private(set) var stage = Stage.size
  /// Bytes of size lines and extensions beyond what chunks of that size need. Many of them in a body indicate an
  /// attack.
  private var excess: Int64 = 0

  /// Limit for a size line, including extension and line break.
  static let longestLine = 4 << 10
  private static let mostExcess: Int64 = 16 << 10

  package init() {}

  package mutating func next(of bytes: UnsafeRawBufferPointer) -> Piece {
    switch stage {
    case .data(let left):
      let count = Int(clamping: min(left, Int64(bytes.count)))
      if count == 0 { return .more }
      take(count)
      return .content(count)
    case .dataEnd:
      if let first = bytes.first, first != 13 { return .malformed }
      if bytes.count < 2 { return .more }
      if bytes[1] != 10 { return .malformed }
      stage = .size
      return .framing(2)
    case .size:
      guard let end = bytes.place(of: 10) else { return bytes.count < Self.longestLine ? .more : .malformed }
      guard end < Self.longestLine, let size = Self.size(UnsafeRawBufferPointer(rebasing: bytes[...end])) else {
        return .malformed
      }
      excess = max(0, excess + Int64(end) - 16 - (size > 1 << 20 ? 1 << 20 : size))
      if excess > Self.mostExcess { return .malformed }
      stage = size == 0 ? .ended : .data(size)
      return .framing(end + 1)
    case .ended: return .malformed
    }
  }

  /// Skips the next `count` bytes of a chunk's data, which need not be inspected.
  package mutating func take(_ count: Int) {
    guard case .data(let left) = stage else { preconditionFailure("no chunk has data here") }
    stage = left == Int64(count) ? .dataEnd : .data(left - Int64(count))
  }

  /// The chunk size of a chunk's first line: hexadecimal digits, optionally followed by an extension. `line` includes
  /// its line break. nil if the line is malformed.
  private static func size(_ line: UnsafeRawBufferPointer) -> Int64? {
    guard line.count >= 3, line[line.count - 2] == 13 else { return nil }
    let line = UnsafeRawBufferPointer(rebasing: line[..<(line.count - 2)])
    if line.hasControlCharacter { return nil }
    var (size, digits): (Int64, Int) = (0, 0)
    for byte in line {
      guard let digit = byte.hexValue else { break }
      size = size << 4 | Int64(digit)
      digits += 1
      if digits > 15 { return nil }
    }
    let rest = line[digits...].drop { $0 == 32 || $0 == 9 }
    return digits > 0 && (rest.isEmpty || rest.first == UInt8(ascii: ";")) ? size : nil
  }
}
