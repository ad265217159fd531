import Blobs
import Synchronization

/// Opens a file of age whose bytes arrive one after the other, as those of a response. Each chunk is checked before its
/// plaintext is handed over.
///
/// It belongs to one thread at a time.
package final class SealOpener {
  private struct Opened {
    let seal: FileSeal
    let cipher: ChunkCipher
  }
  private let identities: [SealIdentity]
  private var opened: Opened?
  /// The bytes before the header was read.
  private var header: [UInt8] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: FileSeal.chunk + FileSeal.overhead, alignment: 16)
  /// Bytes of the chunk in `buffer`, and its number.
  private var (filled, number): (Int, Int64) = (0, 0)
  /// The first bytes of `buffer` that may have been written.
  private var written = 0
  /// A passphrase takes much memory, so one header at a time is opened.
  private static let turn = Mutex(())

  package init(with identities: [SealIdentity]) { self.identities = identities }

  deinit {
    // Freed memory must not contain plaintext.
    UnsafeMutableRawBufferPointer(rebasing: buffer[..<written]).initializeMemory(as: UInt8.self, repeating: 0)
    buffer.deallocate()
  }

  /// Calls `take` with the plaintext of each chunk that is known not to be the last one; its memory is used again after
  /// that. Throws `.permission` if no identity opens the file, `.unsupported` if it is no age file, `.io` if a chunk is not
  /// what was sealed, and what `take` throws. Takes about a second for a passphrase.
  package func append(
    _ bytes: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) throws(BlobError) -> Void
  ) throws(BlobError) {
    guard let opened else {
      header += bytes
      guard let seal = try open(header) else {
        if header.count > SealHeader.most { throw ReadSealHeader.refused("it has no end of its header") }
        return
      }
      self.opened = Opened(seal: seal, cipher: ChunkCipher(key: seal.payloadKey))
      let rest = Array(header.dropFirst(seal.prefix.count))
      header = []
      try append(rest, take)
      return
    }
    var bytes = bytes
    while !bytes.isEmpty {
      if filled == buffer.count { try openChunk(opened.cipher, isLast: false, take) }
      let some = UnsafeRawBufferPointer(rebasing: bytes.prefix(buffer.count - filled))
      UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(from: some)
      filled += some.count
      written = max(written, filled)
      bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(some.count))
    }
  }

  /// The file has ended: calls `take` with the plaintext of its last chunk. Throws as `append`, `.io` also if the file was cut.
  package func end(_ take: (UnsafeRawBufferPointer) throws(BlobError) -> Void) throws(BlobError) {
    guard let opened else { throw ReadSealHeader.refused("it ends in its header") }
    try openChunk(opened.cipher, isLast: true, take)
  }

  private func append(
    _ bytes: [UInt8], _ take: (UnsafeRawBufferPointer) throws(BlobError) -> Void
  ) throws(BlobError) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 16)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes)
    try append(UnsafeRawBufferPointer(rebasing: copy[..<bytes.count]), take)
  }

  private func open(_ bytes: [UInt8]) throws(BlobError) -> FileSeal? {
    let result = Self.turn.withLock { _ in
      Result { () throws(BlobError) in try FileSeal.open(bytes, with: identities) }
    }
    return try result.get()
  }

  private func openChunk(
    _ cipher: ChunkCipher, isLast: Bool, _ take: (UnsafeRawBufferPointer) throws(BlobError) -> Void
  ) throws(BlobError) {
    let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer[..<filled])
    // Only an empty file has a chunk without plaintext.
    guard filled > FileSeal.overhead || filled == FileSeal.overhead && number == 0,
      cipher.open(chunk, nonce: FileSeal.nonce(number, isLast: isLast))
    else {
      throw BlobError(
        .io,
        "open an age file: chunk \(number + 1) is not what was sealed: it was changed, or the file was cut or joined")
    }
    let plain = UnsafeRawBufferPointer(rebasing: chunk.dropLast(FileSeal.overhead))
    (filled, number) = (0, number + 1)
    if !plain.isEmpty { try take(plain) }
  }
}
