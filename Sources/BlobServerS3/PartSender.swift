import BlobCrypto
import BlobServer
import BlobUpload
import Blobs

/// Sends bytes of known number to the bucket while they arrive.
final class PartSender: @unchecked Sendable {
  // Used by one thread at a time, under the lock of its reception.
  private let pipe: BlobPipe
  private let share: MemoryShares.Share
  private let request: RunningRequest<PartReceipt?>
  private let digest = Digest(.sha256)
  /// The number of bytes that are still to come.
  private(set) var left: Int64
  let length: Int64

  /// `send` sends the slice in one request. Its result is nil for a tail.
  init(
    length: Int64, _ bucket: S3Bucket,
    _ send: @escaping @Sendable (BlobSlice, S3Multipart, UploadContext) async throws(UploadError) -> PartReceipt?
  ) {
    self.length = length
    left = length
    share = bucket.memory.take()
    pipe = BlobPipe(capacity: share.size)
    let slice = BlobSlice(PipeSource(pipe, length: length), length: length)
    request = bucket.start { s3, context async throws(UploadError) in try await send(slice, s3, context) }
  }

  /// Blocks while the bucket's server takes bytes more slowly than they come.
  func write(_ bytes: UnsafeRawBufferPointer) throws(ServerError) {
    do throws(BlobError) {
      try pipe.write(bytes)
    } catch {
      // The request has ended before it had all bytes.
      do throws(UploadError) { _ = try request.value() } catch { throw ServerError(storing: error) }
      throw ServerError(503, "a part was stored before it was complete")
    }
    digest.update(bytes)
    left -= Int64(bytes.count)
  }

  func write(all bytes: [UInt8]) throws(ServerError) {
    var failure: ServerError?
    // `withUnsafeBytes` would lose the type of the error.
    bytes.withUnsafeBytes { bytes in
      do throws(ServerError) { try write(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Blocks until the bucket has the bytes. Call once, when nothing is left.
  func finish() throws(ServerError) -> (receipt: PartReceipt?, sha256: String) {
    pipe.finish()
    do throws(UploadError) {
      return (try request.value(), Digest.hex(digest.value()))
    } catch {
      throw ServerError(storing: error)
    }
  }

  /// Ends the request before its last byte, so that the bucket keeps nothing of it. Does not block.
  func abandon() {
    pipe.fail(BlobError(.cancelled, "the client has sent less than it had announced"))
    request.cancel()
  }
}
