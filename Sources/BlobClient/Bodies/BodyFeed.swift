import BlobHTTP
import Blobs

/// Supplies the bytes of a request body while it is sent.
protocol BodyFeed: AnyObject {
  /// Whether some bytes of the source were already consumed.
  var hasBegun: Bool { get }
  /// Whether the next `next` reads from the source.
  var awaitsSource: Bool { get }
  /// Called before the head is sent: the feed may start to read ahead.
  func begin()
  /// Returns the next bytes, at least one; the memory stays valid until these bytes are released. Must not be called
  /// after the last byte. Blocks while the source blocks.
  func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer
  /// The caller no longer needs the first `count` bytes that `next` returned.
  func release(_ count: Int)
  /// Whether all bytes of the body were released.
  var isAtEnd: Bool { get }
  /// The number of body bytes, without framing, among the first `count` bytes of the feed, which must have been
  /// released.
  func content(upTo count: Int64) -> Int64
}

/// Reads from the source on demand, into the worker's buffer.
final class ReadFeed: BodyFeed {
  var hasBegun: Bool { read > 0 }
  var awaitsSource: Bool { left.isEmpty }

  private let reader: any BlobReader
  private let length: Int64
  private let buffer: UnsafeMutableRawBufferPointer
  private var read: Int64 = 0
  /// The part of the buffer that was not released yet.
  private var left = 0..<0

  init(_ reader: any BlobReader, length: Int64, _ buffer: UnsafeMutableRawBufferPointer) {
    self.reader = reader
    self.length = length
    self.buffer = buffer
  }

  func begin() {}

  func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
    if left.isEmpty {
      let owed = Int(clamping: length - read)
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(owed)))
      if count == 0 { throw BlobError(.truncated, "the source ended at byte \(read) of \(length)") }
      read += Int64(count)
      left = 0..<count
    }
    return UnsafeRawBufferPointer(rebasing: buffer[left])
  }

  func release(_ count: Int) { left = left.lowerBound + count..<left.upperBound }

  var isAtEnd: Bool { read == length && left.isEmpty }

  func content(upTo count: Int64) -> Int64 { count }
}

/// A second thread reads ahead from the source; `next` returns the memory that this thread has read into, without a
/// copy.
final class ReadAheadFeed: BodyFeed {
  var hasBegun: Bool { reader == nil }
  /// The other thread reads.
  var awaitsSource: Bool { false }

  /// nil: the reader now belongs to the other thread.
  private var reader: (any BlobReader)?
  private let length: Int64
  private let piece: Int
  private let ring: ReadAheadBuffer
  private var given: Int64 = 0

  /// `freed` is called when the feed's memory, `pieces` times `piece` bytes, was freed.
  init(_ reader: any BlobReader, length: Int64, piece: Int, freed: @escaping @Sendable () -> Void) {
    self.reader = reader
    self.length = length
    self.piece = piece
    ring = ReadAheadBuffer(freed: freed)
  }

  deinit { ring.leave() }

  func begin() {
    guard let reader = reader.take() else { return }
    (reader as? any ReadAheadAware)?.willBeReadAhead()
    ring.read(reader, at: 0, Self.pieces * piece, piece: piece)
  }

  func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
    let bytes = try cancel.whileWaiting(wakeUp: { [ring] in ring.wake() }) { () throws(BlobError) in
      try ring.next(piece, cancel)
    }
    if bytes.isEmpty { throw BlobError(.truncated, "the source ended at byte \(given) of \(length)") }
    return UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(clamping: length - given)))
  }

  func release(_ count: Int) {
    given += Int64(count)
    ring.release(count)
  }

  var isAtEnd: Bool { given == length }

  func content(upTo count: Int64) -> Int64 { count }

  /// Two pieces: one is read into while the other is sent. With more pieces, the reading thread would occupy a
  /// processor that the sender or the receiver needs.
  static let pieces = 2
}
