import BlobCrypto
import Blobs
import Foundation

/// A delegate that hashes the stream's bytes. Confined to the thread of one run loop.
final class Checksum: NSObject, StreamDelegate {
  private let digest = Digest(.sha256)
  private(set) var count = 0
  private(set) var isDone = false

  var hexValue: String { digest.hexValue() }

  func stream(_ stream: Stream, handle event: Stream.Event) {
    switch event {
    case .hasBytesAvailable:
      guard let stream = stream as? InputStream else { return }
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 << 10) { buffer in
        let read = stream.read(buffer.baseAddress!, maxLength: buffer.count)
        if read <= 0 { return }
        digest.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer).prefix(read)))
        count += read
      }
    case .endEncountered, .errorOccurred: isDone = true
    default: break
    }
  }
}
