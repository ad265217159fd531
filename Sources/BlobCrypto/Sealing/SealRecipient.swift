import Blobs

#if !canImport(CryptoKit)
  import CCrypto
#endif

/// The people who can open a sealed file: the owner of a key, or everyone who has a passphrase. See `SealedSource`.
public struct SealRecipient: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  private enum Kind: Sendable, Hashable {
    case x25519(X25519.PublicKey)
    case ssh(SSHKey)
    case passphrase([UInt8], logarithm: Int)
  }
  private let kind: Kind

  private init(_ kind: Kind) { self.kind = kind }

  /// A public key: `age1…`, as `age-keygen` shows it, or a line `ssh-ed25519 AAAA…` of a `.pub` file. Throws
  /// `.unsupported` for other kinds of keys, such as RSA, and for a key that is misspelt.
  public init(_ text: String) throws(BlobError) {
    let text = String(text.drop { $0 == " " }.prefix { $0 != "\r" && $0 != "\n" })
    if let key = SSHKey(text) {
      self.init(.ssh(key))
      return
    }
    let word = text.split(separator: " ").first.map(String.init) ?? ""
    if word.hasPrefix("ssh-") {
      throw BlobError(
        .unsupported, "an SSH key of the kind '\(word)': wanted is ssh-ed25519, whole as in its .pub file")
    }
    if word.lowercased().hasPrefix("age-secret-key-") {
      throw BlobError(
        .unsupported, "this is a private key: wanted is the public one, age1…, that 'age-keygen -y' shows")
    }
    guard text.split(separator: " ").count == 1, let (prefix, bytes) = Bech32.decode(word) else {
      throw BlobError(.unsupported, "no public key of age, age1… or ssh-ed25519 AAAA…, or one that is misspelt")
    }
    guard prefix == "age", bytes.count == 32 else {
      throw BlobError(
        .unsupported, "a key of the kind '\(prefix)1…': wanted is age1…, as 'age-keygen' makes it, or ssh-ed25519")
    }
    self.init(.x25519(X25519.PublicKey(bytes)))
  }

  /// Everyone who has the passphrase; it must be the only recipient. Each file takes about a second and 256 MiB of memory,
  /// for the sender and the receiver, so that guessing is slow too. Throws `.unsupported` on Apple's systems, whose
  /// libraries have no scrypt, and for an empty passphrase.
  public static func passphrase(_ text: String) throws(BlobError) -> SealRecipient {
    try passphrase(text, logarithm: 18)
  }

  /// `logarithm`: of the work. Fewer than 18 are for tests.
  package static func passphrase(_ text: String, logarithm: Int) throws(BlobError) -> SealRecipient {
    if text.isEmpty { throw BlobError(.unsupported, "an empty passphrase protects nothing") }
    if !Scrypt.isKnown {
      throw BlobError(.unsupported, "a passphrase needs scrypt, which Apple's libraries do not have: use a key, age1…")
    }
    return SealRecipient(.passphrase(Array(text.utf8), logarithm: logarithm))
  }

  /// The public key, or the words 'a passphrase'. Equal keys have equal texts.
  public var description: String {
    switch kind {
    case .x25519(let key): Bech32.encode("age", key.bytes)
    case .ssh(let key): "\(SSHKey.kind) \(Base64.encode(key.wire))"
    case .passphrase: "a passphrase"
    }
  }

  public var customMirror: Mirror { Mirror(self, children: []) }

  /// A passphrase takes long, and must be the only recipient.
  package var isPassphrase: Bool { if case .passphrase = kind { true } else { false } }

  /// A recipient whose stanza has as many bytes and takes no time.
  package var forMeasuring: SealRecipient {
    if case .passphrase(let bytes, 10...) = kind { SealRecipient(.passphrase(bytes, logarithm: 10)) } else { self }
  }

  /// The identity that opens what is sealed for this passphrase; nil: it is a public key.
  package var passphraseIdentity: SealIdentity? {
    if case .passphrase(let bytes, _) = kind { SealIdentity(passphrase: bytes) } else { nil }
  }

  /// Bytes that the stanza has in a header. They are the same for each file.
  func wrap(_ fileKey: [UInt8]) throws(BlobError) -> SealHeader.Stanza {
    switch kind {
    case .x25519(let key):
      let (share, secret) = try Self.exchange(with: key, self)
      let wrapKey = hkdf(secret, salt: share + key.bytes, info: Array(Self.label.utf8), count: 32)
      return .init(arguments: ["X25519", SealHeader.base64(share)], body: ChunkCipher.seal(fileKey, key: wrapKey))
    case .ssh(let key):
      let (share, plain) = try Self.exchange(with: X25519.PublicKey(key.point), self)
      guard let secret = key.tweaked(plain) else { throw Self.weak(self) }
      let wrapKey = hkdf(secret, salt: share + key.point, info: Array(SSHKey.label.utf8), count: 32)
      return .init(
        arguments: [SSHKey.kind, SealHeader.base64(key.mark), SealHeader.base64(share)],
        body: ChunkCipher.seal(fileKey, key: wrapKey))
    case .passphrase(let passphrase, let logarithm):
      let salt = randomBytes(16)
      guard let wrapKey = Scrypt.key(passphrase, salt: Array(Self.scrypt.utf8) + salt, logarithm: logarithm) else {
        throw BlobError(.io, "derive a key from a passphrase: \(1 << (logarithm - 10)) MiB of memory are needed for it")
      }
      return .init(
        arguments: ["scrypt", SealHeader.base64(salt), "\(logarithm)"], body: ChunkCipher.seal(fileKey, key: wrapKey))
    }
  }

  private static func exchange(
    with key: X25519.PublicKey, _ recipient: SealRecipient
  ) throws(BlobError) -> (share: [UInt8], secret: [UInt8]) {
    let own = X25519(randomBytes(X25519.keyCount))
    guard let secret = own.shared(with: key) else { throw weak(recipient) }
    return (own.publicKey, secret)
  }

  private static func weak(_ recipient: SealRecipient) -> BlobError {
    BlobError(.unsupported, "seal for \(recipient): everyone could open what is sealed for this key")
  }

  static let label = "age-encryption.org/v1/X25519"
  static let scrypt = "age-encryption.org/v1/scrypt"
}

/// Bytes that nobody can guess.
func randomBytes(_ count: Int) -> [UInt8] {
  #if canImport(CryptoKit)
    var random = SystemRandomNumberGenerator()
    let words = (0..<(count + 7) / 8).map { _ in random.next() as UInt64 }
    return words.withUnsafeBytes { Array($0.prefix(count)) }
  #else
    // Each number of Swift's generator is a call of the system.
    var bytes = [UInt8](repeating: 0, count: count)
    let status = RAND_priv_bytes(&bytes, Int32(count))
    precondition(status == 1, "libcrypto has no random numbers")
    return bytes
  #endif
}
