import Blobs
import Foundation

/// An output stream and an input stream connected by a bounded buffer: bytes written to one are read from the other.
///
/// For producers that push (a device library's callback, an encoder, `JSONSerialization`) and consumers that accept an
/// `InputStream`: any amount of data passes through `capacity` bytes of memory. `write` waits while the buffer is full,
/// `read` while it is empty; each may transfer fewer bytes than requested. On run loops, events report when a call
/// would not wait.
///
/// Each end may be used on a different thread. Closing `output` gives the reader the end, after the remaining bytes;
/// `fail` gives it an error. Deallocating `output` without closing it is also an error, because the data may be
/// incomplete. Closing or deallocating `input` is an error for the writer.
public struct BoundStreams: @unchecked Sendable {
  // Both streams guard their state with locks.

  /// The end to write to.
  public let output: BoundOutputStream
  /// The end to read from.
  public let input: BoundInputStream

  /// `capacity`: size of the buffer in bytes, at least 1.
  public init(capacity: Int = 1 << 20) {
    let ring = PipeRing(capacity: capacity)
    output = BoundOutputStream(WritingEnd(ring))
    input = BoundInputStream(ReadingEnd(ring))
  }
}
