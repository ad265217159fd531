import BlobStreams
import Blobs
import Foundation

/// Requests a photograph from the library and buffers the data until it is read.
final class PhotoRequest: EventedSource, @unchecked Sendable {
  // `lock` guards the following variables.
  private let lock = NSLock()
  private let library: PhotoLibrary
  private let name: String
  private var waiting: [Data] = []
  private var isCancelled = false

  var answersOnMainThread: Bool { true }

  init(of library: PhotoLibrary, named name: String) {
    self.library = library
    self.name = name
  }

  func open(_ tell: @escaping @Sendable (SourceEvent) -> Void) {
    library.request(name) { [weak self] answer in
      // Called on the main queue. After `close` the data must not be buffered any more.
      guard let self, !lock.withLock({ isCancelled }) else { return false }
      switch answer {
      case .found(let length):
        tell(.opened(BlobInfo(length: Int64(length), validator: Validator(version: "\(name) of \(length)"))))
      case .data(let data):
        lock.withLock { waiting.append(data) }
        tell(.bytesAvailable)
      case .end: tell(.ended)
      case .missing: tell(.failed(BlobError(.notFound, "there is no photograph \(name)")))
      }
      return true
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    lock.withLock {
      guard let data = waiting.first else { return 0 }
      let count = min(data.count, buffer.count)
      data.copyBytes(to: buffer, count: count)
      if count == data.count { waiting.removeFirst() } else { waiting[0] = data.dropFirst(count) }
      return count
    }
  }

  func close() {
    lock.withLock {
      isCancelled = true
      waiting = []
    }
  }

  func property(forKey key: Stream.PropertyKey) -> Any? { nil }

  /// The library cannot start at an offset, so no property is supported; the stream skips the bytes before an offset.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool { false }
}
