import Blobs

/// The offset at which a stream continues to read, and the reader that is there or will be moved there.
struct ReadPosition {
  /// Offset of the byte that `read` returns next.
  private(set) var offset: Int64 = 0
  /// Offset of the first byte of the body, from which reopened streams count; nil before `open`. A reopened stream has
  /// that of the stream it was made from.
  private(set) var start: Int64?
  /// nil if the length is known only at the end.
  private var length: Int64?
  /// The reader's position differs from `offset`.
  private(set) var mustSeek = false
  var reader: BufferedReader?
  /// An asynchronous `read` found no bytes, and none has succeeded since.
  var cameEarly = false

  init(offset: Int64 = 0, start: Int64? = nil) { (self.offset, self.start) = (offset, start) }

  var isAtEnd: Bool { offset == length }

  /// Bytes that `read` returns next without waiting. Valid until the reader is used again.
  var lent: UnsafeRawBufferPointer {
    guard let reader, !mustSeek else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return reader.lent
  }

  mutating func begin() { start = start ?? offset }

  /// `place`: the offset at which `reader` was opened.
  mutating func opened(_ reader: BufferedReader, at place: Int64) {
    self.reader = reader
    // The reader's length counts from the offset where it was opened.
    length = reader.info.length.map { place + $0 }
  }

  mutating func seek(to target: Int64) { (offset, mustSeek) = (target, true) }

  /// Moves the reader to `offset` if it has the bytes there already.
  mutating func seekInBuffer() { if mustSeek, let reader, reader.move(to: offset) { mustSeek = false } }

  /// The offset to which the caller moves the reader; nil: the reader is there.
  mutating func takeSeek() -> Int64? {
    defer { mustSeek = false }
    return mustSeek ? offset : nil
  }

  /// Reads bytes that the reader has in its buffer; nil: there are none.
  mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    guard let reader, !lent.isEmpty else { return nil }
    let count = reader.take(into: buffer)
    took(count)
    return count
  }

  mutating func took(_ count: Int) {
    offset += Int64(count)
    cameEarly = false
  }
}
