import BlobStreams
import Blobs
import Foundation

/// A data source that may block: a `BlobSource`.
struct Squares: BlobSource {
  let count: Int64
  var access: BlobAccess { .random }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    // The validator identifies the version: an invalidated source goes on only if it is still the same.
    BlobInfo(length: count, validator: Validator(version: "squares of \(count)"))
  }

  // open, and the offset
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard 0...count ~= offset else { throw BlobError(.outOfRange, "open at byte \(offset) of \(count)") }
    return Reader(offset, try info(cancel))
  }

  private final class Reader: BlobReader {
    let info: BlobInfo
    private var offset: Int64

    init(_ offset: Int64, _ info: BlobInfo) {
      self.offset = offset
      self.info = info
    }

    // read:maxLength: of the data source; 0 is atEnd, and a thrown error is its error.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let count = min(buffer.count, Int((info.length ?? 0) - offset))
      for number in 0..<count {
        buffer[number] = UInt8(truncatingIfNeeded: offset &* offset)
        offset += 1
      }
      return count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
}

/// A data source that tells when it has bytes: an `EventedSource`. `EventedBlobSource { Camera(…) }` makes a source of it.
final class Camera: EventedSource, @unchecked Sendable {
  private let queue = DispatchQueue(label: "camera")
  // `lock` guards `waiting`.
  private let lock = NSLock()
  private var waiting: [UInt8] = []
  private let picture: [UInt8]

  init(_ picture: [UInt8]) { self.picture = picture }

  /// Events on the main thread would never arrive while the main thread waits for them.
  var answersOnMainThread: Bool { false }

  func open(_ tell: @escaping @Sendable (SourceEvent) -> Void) {
    let info = BlobInfo(length: Int64(picture.count), validator: Validator(version: "picture of \(picture.count)"))
    queue.async { [self] in
      // openCompleted
      tell(.opened(info))
      lock.withLock { waiting = picture }
      // hasBytesAvailable
      tell(.bytesAvailable)
      // atEnd; an error is .failed
      tell(.ended)
    }
  }

  // read:maxLength:
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    lock.withLock {
      let count = min(buffer.count, waiting.count)
      buffer.copyBytes(from: waiting[..<count])
      waiting.removeFirst(count)
      return count
    }
  }

  func close() { lock.withLock { waiting = [] } }

  // propertyForKey:
  func property(forKey key: Stream.PropertyKey) -> Any? { nil }

  // setProperty:forKey: For NSStreamFileCurrentOffsetKey, false has the stream skip the bytes before the offset.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool { false }
}
