import BlobCrypto
import Blobs

/// A body whose digest is computed while it is read. Each opening starts a new digest.
struct SummedSource: BlobSource {
  private let source: SlicedSource
  private let sum: Monitor<Sum>

  private struct Sum {
    var digest: Digest
    /// Number of openings: bytes read by an earlier reader do not change the digest.
    var pass = 0
  }

  init(_ body: BlobSlice, _ algorithm: Digest.Algorithm) {
    source = SlicedSource(body)
    sum = Monitor(Sum(digest: Digest(algorithm)))
  }

  /// The digest of the bytes that the latest reader has read so far. May be called on any thread.
  var value: [UInt8] { sum.update { $0.digest.value() } }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// Opens the body at its first byte only: a digest of a part would be useless.
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    precondition(offset == 0)
    let reader = try source.open(at: 0, cancel)
    let pass = sum.update { sum in
      sum.digest.reset()
      sum.pass += 1
      return sum.pass
    }
    return ObservedReader(reader) { [sum] bytes, _ in
      sum.update { sum in if sum.pass == pass { sum.digest.update(bytes) } }
    }
  }
}
