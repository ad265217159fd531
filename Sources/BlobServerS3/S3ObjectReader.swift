import BlobCrypto
import BlobServer
import Blobs

/// Reads whole objects of a bucket, for their digests and to compare them.
struct S3ObjectReader: DigestReading {
  let interruption: Cancellation

  func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, fromDisk _: Bool, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]? {
    guard case .remote(let content) = file.content else { preconditionFailure("a file of another store") }
    let digest = Digest(algorithm)
    let isWhole = try read(content, file.item.length) { bytes in
      digest.update(bytes)
      return isWanted()
    }
    return isWhole ? digest.value() : nil
  }

  /// Reads an object from its first byte. Returns false if `take` did.
  func read(
    _ content: any RemoteContent, _ length: Int64, _ take: (UnsafeRawBufferPointer) -> Bool
  ) throws(ServerError) -> Bool {
    if length == 0 { return true }
    let feed = content.start(0..<length)
    defer { feed.stop() }
    while true {
      try interruption.checkServer()
      switch feed.waitForNext() {
      case .bytes(let bytes): if !bytes.withUnsafeBytes(take) { return false }
      case .end: return true
      case .failed, .nothing: throw ServerError(503, "the server's store has not given all bytes of a file")
      }
    }
  }
}

extension Cancellation {
  /// Throws 503 once the server is stopping.
  func checkServer() throws(ServerError) {
    if isCancelled { throw ServerError(503, "the server is stopping") }
  }
}
