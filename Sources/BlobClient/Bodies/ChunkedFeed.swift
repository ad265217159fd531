import BlobHTTP
import Blobs

/// Applies chunked transfer coding to a reader: one chunk per read, then the last chunk and the trailers. RFC 9112
/// §7.1.
final class ChunkedFeed: BodyFeed {
  var hasBegun: Bool { read > 0 || isEnding }
  var awaitsSource: Bool { left.isEmpty && read != length && !isEnding }

  private let reader: any BlobReader
  /// Bytes of the body; nil: the length is known only when the source ends.
  private let length: Int64?
  private let trailers: (@Sendable () -> HTTPHeaders)?
  private let buffer: UnsafeMutableRawBufferPointer
  /// Body bytes read so far.
  private var read: Int64 = 0
  /// The part of the buffer that the connection has not accepted yet.
  private var left = 0..<0
  /// For the chunk in the buffer: the number of feed bytes before its content, and the length of its content.
  private var (before, count): (Int64, Int) = (0, 0)
  /// Feed bytes produced so far, framing included.
  private var made: Int64 = 0
  /// Whether the last chunk was produced.
  private var isEnding = false

  /// - `buffer`: holds one chunk with its framing, which limits the size of a chunk; it must also have room for the
  ///   trailers.
  init(
    _ reader: any BlobReader, length: Int64?, _ buffer: UnsafeMutableRawBufferPointer,
    trailers: (@Sendable () -> HTTPHeaders)?
  ) {
    self.reader = reader
    self.length = length
    self.trailers = trailers
    self.buffer = buffer
  }

  func begin() {}

  func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
    if left.isEmpty {
      // Never sends more than the announced length, even if the source has grown.
      let owed = length.map { Int(clamping: $0 - read) } ?? .max
      let room = UnsafeMutableRawBufferPointer(rebasing: buffer[Self.mostBefore..<buffer.count - 2].prefix(owed))
      let count = owed == 0 ? 0 : try reader.read(into: room)
      if count > 0 { frame(count) } else { try end() }
    }
    return UnsafeRawBufferPointer(rebasing: buffer[left])
  }

  private func frame(_ count: Int) {
    let head = Array("\(String(count, radix: 16))\r\n".utf8)
    let start = Self.mostBefore - head.count
    let end = Self.mostBefore + count
    UnsafeMutableRawBufferPointer(rebasing: buffer[start..<Self.mostBefore]).copyBytes(from: head)
    UnsafeMutableRawBufferPointer(rebasing: buffer[end..<end + 2]).copyBytes(from: "\r\n".utf8)
    (before, self.count) = (made + Int64(head.count), count)
    read += Int64(count)
    left = start..<end + 2
    made += Int64(left.count)
  }

  private func end() throws(BlobError) {
    if let length, read < length { throw BlobError(.truncated, "the source ended at byte \(read) of \(length)") }
    var text = "0\r\n"
    for (name, value) in trailers?().fields ?? [] { text += "\(name): \(value)\r\n" }
    text += "\r\n"
    guard text.utf8.count <= buffer.count else {
      throw BlobError(.io, "the trailers have \(text.utf8.count) bytes, and \(buffer.count) is the most")
    }
    buffer.copyBytes(from: text.utf8)
    (before, count) = (made, 0)
    left = 0..<text.utf8.count
    made += Int64(left.count)
    isEnding = true
  }

  func release(_ count: Int) { left = left.lowerBound + count..<left.upperBound }

  var isAtEnd: Bool { isEnding && left.isEmpty }

  /// Everything before the chunk in the buffer has left; only the content of that chunk may be incomplete.
  func content(upTo released: Int64) -> Int64 {
    read - Int64(count) + min(max(released - before, 0), Int64(count))
  }

  /// The chunk size (up to 16 hexadecimal digits) and CRLF.
  private static let mostBefore = 18
}
