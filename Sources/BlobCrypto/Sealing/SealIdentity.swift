import Blobs
import Synchronization

/// The secret that opens files that were sealed for its recipient. Its descriptions do not contain it.
public struct SealIdentity: Sendable, CustomStringConvertible, CustomReflectable {
  private enum Kind: Sendable {
    case x25519([UInt8])
    case ssh(SSHPrivateKey)
    case passphrase([UInt8])
  }
  private let kind: Kind

  /// A private key: `AGE-SECRET-KEY-1…`, as `age-keygen` makes it, or the content of a file like `id_ed25519`. Throws
  /// `.unsupported` for other keys.
  public init(_ text: String) throws(BlobError) {
    if text.hasPrefix("-----BEGIN") {
      kind = .ssh(try SSHPrivateKey(text))
      return
    }
    guard let (prefix, bytes) = Bech32.decode(text), prefix == "age-secret-key-", bytes.count == 32 else {
      throw BlobError(.unsupported, "no private key of age, AGE-SECRET-KEY-1…, and none of SSH")
    }
    kind = .x25519(bytes)
  }

  /// The passphrase of a file. Opening one takes as long as sealing it.
  public static func passphrase(_ text: String) -> SealIdentity { SealIdentity(passphrase: Array(text.utf8)) }

  init(passphrase: [UInt8]) { kind = .passphrase(passphrase) }

  public var description: String { "an identity" }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// The logarithm of the work that an scrypt stanza may ask for. This one takes 1 GiB of memory, and a stranger's file could
  /// ask for any.
  private static let mostWork = 20
  /// Held while a passphrase is tried.
  private static let turn = Mutex(())

  /// The file key; nil: no stanza is for this identity. Throws `.unsupported` if the header breaks a rule.
  func unwrap(_ header: SealHeader) throws(BlobError) -> [UInt8]? {
    for stanza in header.stanzas {
      guard stanza.arguments.first == "scrypt" else { continue }
      if header.stanzas.count > 1 { throw ReadSealHeader.refused("a passphrase is not its only recipient") }
    }
    for stanza in header.stanzas { if let key = try unwrap(stanza) { return key } }
    return nil
  }

  private func unwrap(_ stanza: SealHeader.Stanza) throws(BlobError) -> [UInt8]? {
    switch (kind, stanza.arguments[0]) {
    case (.x25519(let key), "X25519"):
      let share = try Self.field(1, of: stanza, arguments: 2, bytes: 32)
      let own = X25519(key)
      guard let secret = own.shared(with: X25519.PublicKey(share)) else { throw Self.broken(stanza) }
      let salt = share + own.publicKey
      return ChunkCipher.open(
        stanza.body, key: hkdf(secret, salt: salt, info: Array(SealRecipient.label.utf8), count: 32))
    case (.ssh(let key), SSHKey.kind):
      let mark = try Self.field(1, of: stanza, arguments: 3, bytes: 4)
      let share = try Self.field(2, of: stanza, arguments: 3, bytes: 32)
      if mark != key.publicKey.mark { return nil }
      guard let plain = X25519(key.scalar).shared(with: X25519.PublicKey(share)),
        let secret = key.publicKey.tweaked(plain)
      else {
        throw Self.broken(stanza)
      }
      return ChunkCipher.open(
        stanza.body,
        key: hkdf(secret, salt: share + key.publicKey.point, info: Array(SSHKey.label.utf8), count: 32))
    case (.passphrase(let passphrase), "scrypt"):
      let salt = try Self.field(1, of: stanza, arguments: 3, bytes: 16)
      let work = stanza.arguments[2]
      guard work.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), work.first != "0",
        let logarithm = Int(work)
      else { throw Self.broken(stanza) }
      if logarithm > Self.mostWork {
        throw ReadSealHeader.refused(
          "its passphrase asks for more work and memory, 2^\(work), than is allowed here, 2^\(Self.mostWork) with 1 GiB; "
            + "'age -d' opens it")
      }
      // Several at once would take gigabytes.
      let key = Self.turn.withLock { _ in
        Scrypt.key(passphrase, salt: Array(SealRecipient.scrypt.utf8) + salt, logarithm: logarithm)
      }
      guard let key else { throw BlobError(.io, "open an age file: scrypt, or the memory that it needs, is missing") }
      return ChunkCipher.open(stanza.body, key: key)
    default: return nil
    }
  }

  /// The bytes of an argument. The length of the wrapped key is checked too: other lengths would tell about the
  /// identity.
  private static func field(
    _ index: Int, of stanza: SealHeader.Stanza, arguments: Int, bytes count: Int
  ) throws(BlobError) -> [UInt8] {
    guard stanza.arguments.count == arguments, let bytes = SealHeader.bytes(base64: stanza.arguments[index]),
      bytes.count == count, stanza.body.count == SealHeader.fileKeyCount + ChunkCipher.tagCount
    else { throw broken(stanza) }
    return bytes
  }

  private static func broken(_ stanza: SealHeader.Stanza) -> BlobError {
    ReadSealHeader.refused("a stanza for \(stanza.arguments[0]) in its header is not as it should be")
  }
}
