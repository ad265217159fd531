import BlobCrypto
import Blobs

/// A body whose digest is computed while it is read. Opening it begins anew.
struct SummedSource: BlobSource {
  private let source: SlicedSource
  private let sum: Monitor<Sum>

  private struct Sum {
    var digest: Digest
    /// Counts the openings: a reader that was given up feeds nothing any more.
    var pass = 0
  }

  init(_ body: BlobSlice, _ algorithm: Digest.Algorithm) {
    source = SlicedSource(body)
    sum = Monitor(Sum(digest: Digest(algorithm)))
  }

  /// Of what the latest reader has read so far. Any thread may ask.
  var value: [UInt8] { sum.update { $0.digest.value() } }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// At its first byte only: a digest of less says nothing.
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    precondition(offset == 0)
    let reader = try source.open(at: 0, cancel)
    let pass = sum.update { sum in
      sum.digest.reset()
      sum.pass += 1
      return sum.pass
    }
    return Reader(reader, sum, pass)
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let sum: Monitor<Sum>
    private let pass: Int

    init(_ reader: any BlobReader, _ sum: Monitor<Sum>, _ pass: Int) {
      self.reader = reader
      self.sum = sum
      self.pass = pass
    }

    var info: BlobInfo { reader.info }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let count = try reader.read(into: buffer)
      sum.update { sum in
        if sum.pass == pass { sum.digest.update(UnsafeRawBufferPointer(rebasing: buffer.prefix(count))) }
      }
      return count
    }

    // What is sent from a region is not summed.
    func fileRegion() -> FileRegion? { nil }

    func finish() throws(BlobError) { try reader.finish() }
  }
}
