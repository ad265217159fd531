import Blobs
import Foundation

/// Bytes from something that tells when it has them, and never waits: a photo library, a camera, a decoder.
///
/// One pass over the bytes. `EventedBlobSource` makes a `BlobSource` of any number of them, and calls `open`, `read` and
/// `close` from one thread at a time; `property` and `setProperty` may come meanwhile. For a source that may wait, write
/// a `BlobSource`: that is simpler.
public protocol EventedSource: AnyObject, Sendable {
  /// Whether it tells on the main thread: waiting for it there would never end, and is refused.
  var answersOnMainThread: Bool { get }

  /// Begins to open. `tell` may be called on any thread, at any time: late, twice, or after `close`.
  func open(_ tell: @escaping @Sendable (SourceEvent) -> Void)

  /// Copies what is there, without waiting: bytes copied, 0 if there are none for now.
  /// A `BlobError` is passed on as it is, any other error as the cause of one.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int

  /// No more calls but of `property` and `setProperty`. Also called where opening failed, and before the end.
  func close()

  /// nil for a key it does not know.
  func property(forKey key: Stream.PropertyKey) -> Any?

  /// False for what it does not take. `.fileCurrentOffsetKey` (an `Int64`) is set before `open`, to say at which byte to
  /// begin; a source that answers false is read from its start, and the bytes before are dropped.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool
}

/// What an `EventedSource` tells.
public enum SourceEvent: Sendable {
  /// It is open, and this is what it knows of its bytes. The length is that of all of them.
  case opened(BlobInfo)
  /// `read` may give something.
  case bytesAvailable
  /// Once `read` gives nothing, that is the end.
  case ended
  /// There will be no more bytes. `.invalidated` asks to try again, with another pass at the same byte.
  case failed(any Error)
}

/// A source that has settings, by the keys of Foundation's streams. Any thread may ask, at any time.
public protocol ConfigurableSource: BlobSource {
  /// nil for a key it does not know.
  func property(forKey key: Stream.PropertyKey) -> Any?

  /// False, and nothing changed, for what it does not take.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool
}
