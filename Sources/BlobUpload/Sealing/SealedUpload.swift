import BlobCrypto
import Blobs
import Synchronization

/// The source of an item whose ciphertext is uploaded. It has the validator of the plaintext, by which the journal knows
/// the item, and the length of the ciphertext. It can be opened once the queue has given it a key.
package final class SealedUpload: BlobSource {
  private struct Key {
    var source: any BlobSource
    /// No earlier run has used it.
    var isNew: Bool
    /// Wraps the source; nil: the destination is not asked for a digest.
    var hashed: HashingSource?
    /// The first reader that leaves a gap in the digest reads the bytes before it, too.
    var fillsGap = false
  }
  let plain: any BlobSource
  let sealing: Sealing
  private let key = Mutex<Key?>(nil)
  private let recalled = Mutex<SealedContent?>(nil)
  /// A key that was made before the item's turn, for one version of the source and one entry of the journal.
  private let prepared = Mutex<(seal: FileSeal, version: Validator?, entry: Int64)?>(nil)
  package let access: BlobAccess

  package init(_ plain: any BlobSource, _ sealing: Sealing) {
    (self.plain, self.sealing, access) = (plain, sealing, plain.access)
  }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { sealed(try plain.info(cancel)) }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard let key = key.withLock({ $0 }) else {
      throw BlobError(.unsupported, "read a sealed file: the key that it was sent with is gone")
    }
    if key.fillsGap, let hashed = key.hashed, hashed.reached < offset {
      self.key.withLock { $0?.fillsGap = false }
      if offset - hashed.reached <= Self.mostGap { try Self.read(hashed, from: hashed.reached, to: offset, cancel) }
    }
    return try key.source.open(at: offset, cancel)
  }

  /// More bytes than a server can have received since the journal was written last, on most links. A worker waits while
  /// they are read.
  private static let mostGap: Int64 = 256 << 20

  package func closeUntilNeeded() { plain.closeUntilNeeded() }

  /// Whether a later run may go on under the same key: the source can tell whether it is still the same, from any byte.
  func goesOn(_ info: BlobInfo) -> Bool { access == .random && info.validator != nil && info.length != nil }

  /// `info` of the plaintext with the length of the ciphertext.
  package func sealed(_ info: BlobInfo) -> BlobInfo {
    var info = info
    info.length = sealing.length(sealing: info.length)
    info.preferredRead = 0
    return info
  }

  /// From now on, the bytes are sealed with `seal`, which must have sealed no other version. `isNew`: no
  /// earlier run has used it. `algorithm`: of the digest of the ciphertext that is made while it is read; nil: none is made.
  func use(_ seal: FileSeal, for version: Validator?, isNew: Bool, hashing algorithm: Digest.Algorithm?) {
    let source = SealedSource(plain, seal, onlyFor: version, keepsValidator: true)
    let hashed = access == .random ? algorithm.map { HashingSource(source, $0) } : nil
    key.withLock { $0 = Key(source: hashed ?? source, isNew: isNew, hashed: hashed) }
  }

  /// Keeps a key that is in the journal, until the item's turn comes.
  func prepare(_ seal: FileSeal, for version: Validator?, _ entry: Int64) {
    prepared.withLock { $0 = (seal, version, entry) }
  }

  /// The prepared key, which is given once; nil: there is none for this version and entry.
  func takeSeal(for version: Validator?, _ entry: Int64) -> FileSeal? {
    prepared.withLock { prepared in
      defer { prepared = nil }
      return prepared.flatMap { $0.version == version && $0.entry == entry ? $0.seal : nil }
    }
  }

  var hasPreparedSeal: Bool { prepared.withLock { $0 != nil } }

  /// Whether the server can have no file with these bytes: no earlier run has used the key.
  var isUnderNewKey: Bool { key.withLock { $0?.isNew ?? true } }
  /// Forgets the key, once nothing is sent or compared with it any more.
  func forgetKey() { key.withLock { $0 = nil } }
  /// Whether it can be opened.
  var hasKey: Bool { key.withLock { $0 != nil } }
}

// These facts identify the bytes that were sent, once their key is gone.
extension SealedUpload {
  /// Feeds the digest with the bytes before `offset`, which an earlier run has sent. Bytes that the server has after
  /// `offset` are fed when the upload continues.
  func hash(upTo offset: Int64) async throws(UploadError) {
    guard let hashed = key.withLock({ $0?.hashed }) else { return }
    try await readingSource { cancel, note throws(BlobError) in
      try Self.read(hashed, from: hashed.reached, to: offset, cancel, note)
    }
    key.withLock { $0?.fillsGap = true }
  }

  /// The digest of the whole ciphertext. Bytes that were not sent in their order, as parts that are sent at the same time,
  /// are read once more for it. nil: the destination is not asked for a digest, or the source cannot be read any more.
  func digest() async -> DigestValue? {
    guard let hashed = key.withLock({ $0?.hashed }) else { return nil }
    if let digest = DigestValue(hashed) { return digest }
    // The upload is done all the same, and a check compares sizes only.
    try? await readingSource { cancel, note throws(BlobError) in
      try Self.read(hashed, from: hashed.reached, to: .max, cancel, note)
    }
    return DigestValue(hashed)
  }

  /// This call blocks.
  private static func read(
    _ source: HashingSource, from start: Int64, to end: Int64, _ cancel: Cancellation, _ note: (Int) -> Void = { _ in }
  ) throws(BlobError) {
    let reader = try source.open(at: start, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var offset = start
    while offset < end {
      try cancel.check("read a source for the digest of its sealed bytes")
      let rest = Int(clamping: min(end - offset, Int64(buffer.count)))
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<rest]))
      if count == 0 { return }
      note(count)
      offset += Int64(count)
    }
  }

  /// Remembers what the journal has of the bytes that an earlier run has sent.
  func recall(_ content: SealedContent) { recalled.withLock { $0 = content } }

  /// The digests of the bytes that an earlier run has sent. nil: one of them is not known.
  func digests(_ algorithms: [Digest.Algorithm]) -> [[UInt8]]? {
    guard let digest = recalled.withLock({ $0?.digest }), algorithms == [digest.algorithm] else { return nil }
    return [digest.bytes]
  }

  /// The algorithm of the digest that is known of these bytes; nil: none is known.
  var recalledAlgorithm: Digest.Algorithm? { recalled.withLock { $0?.digest?.algorithm } }
}

/// The facts about the ciphertext of an upload that is done. The journal keeps them. It is a class, so that notes about
/// files that are not sealed contain only one empty reference.
final class SealedContent: Sendable, Equatable {
  /// The digest of the ciphertext.
  let digest: DigestValue?
  /// The version that the destination gave to the stored file, where it compares what it stores with a checksum.
  let version: String?

  init(_ digest: DigestValue?, version: String?) { (self.digest, self.version) = (digest, version) }

  static func == (a: SealedContent, b: SealedContent) -> Bool { a.digest == b.digest && a.version == b.version }
}

extension UploadError {
  /// The bytes of a sealed file cannot be made again.
  var isOfLostKey: Bool { side == .source && (cause as? BlobError)?.code == .unsupported }
}

extension UploadItem {
  /// Whether checksums of what was sent stay in the journal. The key of a sealed file is forgotten, so that they could be
  /// compared with nothing.
  var keepsChecksums: Bool { info.wantsTrace && !isSealed }

  package var isSealed: Bool { sealed != nil }
}
