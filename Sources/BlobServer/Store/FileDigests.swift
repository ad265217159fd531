import BlobCrypto
import Blobs
import Platform

/// Reads the files of a store in a folder for their digests.
struct FileDigests: DigestReading, ReceptionDigests {
  let interruption: Cancellation

  func digests(
    of reception: any Reception, _ algorithms: [Digest.Algorithm]
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]] {
    guard let reception = reception as? FileReception else { preconditionFailure("a reception of another store") }
    return try reception.digests(algorithms, interruption)
  }

  func digest(
    of file: OpenItem, _ algorithm: Digest.Algorithm, fromDisk: Bool, while isWanted: () -> Bool
  ) throws(ServerError) -> [UInt8]? {
    guard let descriptor = file.file else { preconditionFailure("a file of another store") }
    if fromDisk { dropCachedContent(descriptor.number) }
    let found = try FileReception.digests(
      [algorithm], of: descriptor, length: file.item.length, interruption, { "read a file" }, while: isWanted)
    return found?[algorithm]
  }
}
