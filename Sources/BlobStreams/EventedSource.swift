import Blobs
import Foundation

/// Bytes from an object that sends events when bytes are available and never blocks: a photo library, a camera, a
/// decoder.
///
/// It is one pass over the bytes. `EventedBlobSource` combines any number of passes into a `BlobSource`; it calls
/// `open`, `read` and `close` from one thread at a time, and `property` and `setProperty` possibly at the same time. If
/// your source may block, implement `BlobSource` instead, which is simpler.
public protocol EventedSource: AnyObject, Sendable {
  /// Whether events are sent on the main thread. If so, waiting on the main thread would deadlock, and is refused.
  var answersOnMainThread: Bool { get }

  /// Starts to open the source. `tell` may be called on any thread at any time: late, twice, or after `close`.
  func open(_ tell: @escaping @Sendable (SourceEvent) -> Void)

  /// Copies the available bytes without waiting and returns their count; 0 if there are none now. A thrown `BlobError`
  /// is passed on unchanged; any other error becomes the cause of a `BlobError`.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int

  /// After this, only `property` and `setProperty` are called. Also called if opening failed, and before the end was
  /// reached.
  func close()

  /// Returns nil for an unknown key.
  func property(forKey key: Stream.PropertyKey) -> Any?

  /// Returns false for a property that it does not accept. `.fileCurrentOffsetKey` (an `Int64`) is set before `open`
  /// and gives the byte at which to begin. If the source returns false for it, it is read from its start, and the bytes
  /// before the offset are discarded.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool
}

/// The events of an `EventedSource`.
public enum SourceEvent: Sendable {
  /// The source is open, and this is its information. The length is that of the whole source.
  case opened(BlobInfo)
  /// `read` may return bytes now.
  case bytesAvailable
  /// The source ends when `read` returns no more bytes.
  case ended
  /// No more bytes will come. `.invalidated` asks for another attempt, with a new pass at the same byte.
  case failed(any Error)
}

/// A source that has properties, with the keys of Foundation's streams. Any thread may access them at any time.
public protocol ConfigurableSource: BlobSource {
  /// Returns nil for an unknown key.
  func property(forKey key: Stream.PropertyKey) -> Any?

  /// Returns false and changes nothing if it does not accept the value.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool
}
