import Blobs

/// The key of one sealed file, and what stands before its chunks: the header, which wraps the key, and a nonce.
///
/// A person who has the seal can open the file. Two plaintexts must never be sealed with it. Its descriptions do not contain the key.
package struct FileSeal: Sendable, CustomStringConvertible, CustomReflectable {
  /// Plaintext bytes of each chunk but the last one.
  package static let chunk = 64 << 10
  /// The number of bytes by which sealing makes a chunk longer.
  package static let overhead = ChunkCipher.tagCount
  private static let nonceCount = 16

  let fileKey: [UInt8]
  /// The header and the nonce.
  package let prefix: [UInt8]

  private init(_ fileKey: [UInt8], prefix: [UInt8]) { (self.fileKey, self.prefix) = (fileKey, prefix) }

  package var description: String { "the seal of a file" }
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// A new key. Takes about a second for a passphrase. Throws `.unsupported` without recipients, and for a passphrase beside
  /// other recipients.
  package init(to recipients: [SealRecipient]) throws(BlobError) {
    if recipients.isEmpty { throw BlobError(.unsupported, "seal a file: there is nobody who could open it") }
    if recipients.count > 1, recipients.contains(where: \.isPassphrase) {
      throw BlobError(.unsupported, "seal a file: a passphrase must be its only recipient")
    }
    // One call of libcrypto's generator takes as long for both.
    let random = randomBytes(SealHeader.fileKeyCount + Self.nonceCount)
    let key = Array(random.prefix(SealHeader.fileKeyCount))
    var stanzas: [SealHeader.Stanza] = []
    for recipient in recipients { stanzas.append(try recipient.wrap(key)) }
    self.init(key, prefix: SealHeader(stanzas: stanzas).encoded(key) + random.suffix(Self.nonceCount))
  }

  /// The key of a file that begins with `header`, and the nonce after it. Throws `.permission` if none of the identities
  /// opens it, and `.unsupported` if the header breaks a rule or was changed.
  init(opening header: ReadSealHeader, _ prefix: [UInt8], with identities: [SealIdentity]) throws(BlobError) {
    var found: [UInt8]?
    for identity in identities where found == nil { found = try identity.unwrap(header.header) }
    guard let key = found else {
      throw BlobError(.permission, "open an age file: it is for none of the given keys or passphrases")
    }
    guard header.isAuthentic(key) else { throw ReadSealHeader.refused("its header was changed") }
    self.init(key, prefix: prefix)
  }

  /// Reads a header and the nonce behind it; nil: `bytes` end before. Throws as `init(opening:_:with:)`.
  static func open(_ bytes: [UInt8], with identities: [SealIdentity]) throws(BlobError) -> FileSeal? {
    guard let header = try ReadSealHeader(bytes), bytes.count >= header.count + nonceCount else { return nil }
    return try FileSeal(opening: header, Array(bytes.prefix(header.count + nonceCount)), with: identities)
  }

  /// Whether one of the identities opens the file. Takes about a second for a passphrase.
  package func isFor(_ identity: SealIdentity) -> Bool {
    // A stanza that cannot be opened is for somebody else, whatever the reason.
    guard let seal = try? Self.open(prefix, with: [identity]) else { return false }
    return seal.fileKey == fileKey
  }

  /// The key of the chunks.
  var payloadKey: [UInt8] {
    hkdf(fileKey, salt: Array(prefix.suffix(Self.nonceCount)), info: Array("payload".utf8), count: 32)
  }

  /// A text that differs for each version of a source under each key, and tells nothing of either.
  func name(of version: String) -> String {
    Digest.hex(HMAC.sha256(Array("version ".utf8) + Array(version.utf8), key: payloadKey))
  }

  /// Bytes of the sealed file for `length` bytes of plaintext; nil: they are more than a file can have.
  func length(sealing length: Int64) -> Int64? {
    Self.chunks(sealing: length).flatMap { sealed in
      let (sum, isOver) = sealed.addingReportingOverflow(Int64(prefix.count))
      return isOver ? nil : sum
    }
  }

  /// The same without what stands before the chunks.
  package static func chunks(sealing length: Int64) -> Int64? {
    let chunks = max(1, length / Int64(chunk) + (length % Int64(chunk) > 0 ? 1 : 0))
    let (sum, isOver) = length.addingReportingOverflow(chunks * Int64(overhead))
    return isOver ? nil : sum
  }

  /// Bytes of plaintext in `sealed` bytes of chunks; nil: no plaintext gives these.
  static func length(opening sealed: Int64) -> Int64? {
    let whole = Int64(chunk + overhead)
    let rest = sealed % whole
    if sealed < Int64(overhead) || 1..<Int64(overhead) ~= rest || rest == Int64(overhead) && sealed > whole {
      return nil
    }
    return sealed - (sealed / whole + (rest > 0 ? 1 : 0)) * Int64(overhead)
  }

  /// The nonce of a chunk: its number in eleven bytes, and whether it is the last one.
  static func nonce(_ number: Int64, isLast: Bool) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: ChunkCipher.nonceCount) { bytes, count in
      bytes.initialize(repeating: 0)
      for place in 0..<8 { bytes[3 + place] = UInt8(truncatingIfNeeded: number >> (56 - 8 * place)) }
      bytes[11] = isLast ? 1 : 0
      count = ChunkCipher.nonceCount
    }
  }
}

// For the journal of an unfinished upload.
extension FileSeal {
  /// The seal, encrypted under `key`, which has 32 random bytes and belongs to the same machine.
  package func boxed(under key: [UInt8]) -> [UInt8] {
    let nonce = randomBytes(ChunkCipher.nonceCount)
    return nonce + ChunkCipher.seal(fileKey + prefix, key: key, nonce: nonce)
  }

  /// nil: this was not boxed under this key.
  package init?(unboxing box: [UInt8], under key: [UInt8]) {
    let nonce = Array(box.prefix(ChunkCipher.nonceCount))
    guard key.count == ChunkCipher.keyCount, nonce.count == ChunkCipher.nonceCount,
      let text = ChunkCipher.open(Array(box.dropFirst(nonce.count)), key: key, nonce: nonce),
      text.count > SealHeader.fileKeyCount + Self.nonceCount
    else { return nil }
    self.init(Array(text.prefix(SealHeader.fileKeyCount)), prefix: Array(text.dropFirst(SealHeader.fileKeyCount)))
  }

  /// A key for `boxed(under:)`.
  package static func newBoxKey() -> [UInt8] { randomBytes(ChunkCipher.keyCount) }
}
