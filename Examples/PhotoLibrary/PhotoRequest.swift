import BlobStreams
import Blobs
import Foundation

/// Asks a library for a photograph, and keeps what comes until it is read.
final class PhotoRequest: EventedSource, @unchecked Sendable {
  // `lock` guards what comes.
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
      // On the main queue. Once nobody wants the photograph, nothing has to be kept.
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

  /// The library gives a photograph from its start: what comes before an offset is dropped for us.
  func setProperty(_ value: Any?, forKey key: Stream.PropertyKey) -> Bool { false }
}
