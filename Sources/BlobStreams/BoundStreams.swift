import Blobs
import Foundation

/// An output stream and an input stream with a bounded buffer between: what is written to one is read from the other.
///
/// For producers that push (a device library's callback, an encoder, `JSONSerialization`) and consumers that take an
/// `InputStream`: gigabytes go through `capacity` bytes of memory. `write` waits while the buffer is full, `read` while
/// it is empty; each may do a part of what was asked. On run loops, events tell when they need not wait.
///
/// Each end may be used on a thread of its own. Closing `output` is the end to the reader, once it has read what is left;
/// `fail` is an error; so is an `output` that is deallocated before it was closed: what it had to say was not complete.
/// Closing or deallocating `input` is an error to the writer.
public struct BoundStreams: @unchecked Sendable {
  // Both streams keep what they have behind locks.

  /// The end to write to.
  public let output: BoundOutputStream
  /// The end to read from.
  public let input: BoundInputStream

  /// `capacity`: the bytes that are held between the two, at least 1.
  public init(capacity: Int = 1 << 20) {
    let ring = PipeRing(capacity: capacity)
    output = BoundOutputStream(WritingEnd(ring))
    input = BoundInputStream(ReadingEnd(ring))
  }
}
