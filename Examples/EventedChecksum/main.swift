// Computes a checksum without blocking: an asynchronous InputStream calls its delegate on a run loop when bytes are
// available.
//   EventedChecksumExample
import BlobCrypto
import BlobStreams
import Blobs
import Foundation

/// Hashes the stream's bytes. Confined to the run loop's thread.
final class Checksum: NSObject, StreamDelegate {
  let digest = Digest(.sha256)
  var (isDone, error): (Bool, (any Error)?) = (false, nil)

  func stream(_ stream: Stream, handle event: Stream.Event) {
    switch event {
    case .hasBytesAvailable:
      var buffer = [UInt8](repeating: 0, count: 4 << 10)
      let count = (stream as! InputStream).read(&buffer, maxLength: buffer.count)
      // -1 means that no bytes are available yet; another event will follow.
      if count > 0 { buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) } }
    case .endEncountered: isDone = true
    case .errorOccurred: (isDone, error) = (true, stream.streamError)
    default: break
    }
  }
}

let film = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
let stream = BlobInputStream(DataSource(film), asynchronous: true)
let sum = Checksum()
stream.delegate = sum
stream.schedule(in: .current, forMode: .default)
stream.open()
while !sum.isDone { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
stream.close()

if let error = sum.error {
  print("could not be read:", error.localizedDescription)
  exit(1)
}
print("SHA-256", sum.digest.hexValue())
if sum.digest.hexValue() != Digest.hex(of: film, .sha256) {
  print("that is wrong")
  exit(1)
}
