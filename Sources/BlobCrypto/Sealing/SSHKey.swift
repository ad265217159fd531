import Blobs

/// An Ed25519 key of SSH as age uses it: the point of Curve25519 that belongs to it, and a factor that depends on the
/// key, so that SSH and age do not share secrets.
struct SSHKey: Sendable, Hashable {
  static let kind = "ssh-ed25519"
  /// The public key as SSH writes it, in binary form.
  let wire: [UInt8]
  /// The public key on Curve25519.
  let point: [UInt8]

  /// `text` is a line of a `.pub` file: `ssh-ed25519 AAAA… comment`. nil: it is none, or no point belongs to it.
  init?(_ text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: true)
    guard words.count >= 2, words[0] == Self.kind, let wire = Base64.decode(words[1]) else { return nil }
    self.init(wire: wire)
  }

  init?(wire: [UInt8]) {
    var rest = wire[...]
    guard let kind = rest.takeSSHString(), kind == Array(Self.kind.utf8), let key = rest.takeSSHString(), rest.isEmpty,
      key.count == 32
    else { return nil }
    // The highest bit is the sign of x, which Curve25519 does not have.
    var y = key
    y[31] &= 0x7f
    guard let point = Curve25519Field(y)?.montgomery else { return nil }
    (self.wire, self.point) = (wire, point.bytes)
  }

  /// The beginning of the key's digest, by which a file says for which key it is.
  var mark: [UInt8] { Array(Digest.value(of: wire, .sha256).prefix(4)) }

  /// The secret of both sides, multiplied with the factor of this key. nil: it would be zero.
  func tweaked(_ secret: [UInt8]) -> [UInt8]? {
    X25519(hkdf([], salt: wire, info: Array(Self.label.utf8), count: 32)).shared(with: X25519.PublicKey(secret))
  }

  static let label = "age-encryption.org/v1/ssh-ed25519"
}

/// The private part of an Ed25519 key of SSH.
struct SSHPrivateKey: Sendable {
  let publicKey: SSHKey
  /// The private key on Curve25519.
  let scalar: [UInt8]

  /// `text` is the content of a file like `id_ed25519`. Throws `.unsupported` if it has a passphrase, or is another
  /// kind of key. The messages contain nothing of it.
  init(_ text: String) throws(BlobError) {
    let lines = text.split(whereSeparator: \.isNewline).map(String.init)
    guard lines.first == "-----BEGIN OPENSSH PRIVATE KEY-----", lines.last == "-----END OPENSSH PRIVATE KEY-----",
      let bytes = Base64.decode(lines.dropFirst().dropLast().joined())
    else { throw BlobError(.unsupported, "read an SSH key: this is no private key as OpenSSH writes it") }
    var rest = bytes.dropFirst(15)
    let none = Array("none".utf8)
    guard bytes.starts(with: Array("openssh-key-v1\0".utf8)), let cipher = rest.takeSSHString(),
      let kdf = rest.takeSSHString(), rest.takeSSHString() != nil, rest.takeSSHNumber() == 1,
      rest.takeSSHString() != nil, var secret = rest.takeSSHString()?[...]
    else { throw BlobError(.unsupported, "read an SSH key: the file is cut or damaged") }
    if cipher != none || kdf != none {
      throw BlobError(.unsupported, "read an SSH key: it has a passphrase; 'ssh-keygen -p' makes one without")
    }
    let (check, again) = (secret.takeSSHNumber(), secret.takeSSHNumber())
    guard check != nil, check == again, secret.takeSSHString() == Array(SSHKey.kind.utf8),
      let open = secret.takeSSHString(), let pair = secret.takeSSHString(), pair.count == 64,
      let publicKey = SSHKey(wire: SSHKey.kind.sshString + open.sshString)
    else { throw BlobError(.unsupported, "read an SSH key: it is no Ed25519 key") }
    self.publicKey = publicKey
    scalar = Array(Digest.value(of: Array(pair.prefix(32)), .sha512).prefix(32))
  }
}

extension ArraySlice<UInt8> {
  /// Removes a number of four bytes, the highest first. nil: too few bytes are left.
  fileprivate mutating func takeSSHNumber() -> Int? {
    if count < 4 { return nil }
    defer { removeFirst(4) }
    return prefix(4).reduce(0) { $0 << 8 | Int($1) }
  }

  /// Removes a string, which follows its length. RFC 4251 §5.
  fileprivate mutating func takeSSHString() -> [UInt8]? {
    guard let length = takeSSHNumber(), length <= count else { return nil }
    defer { removeFirst(length) }
    return Array(prefix(length))
  }
}

extension Collection<UInt8> {
  fileprivate var sshString: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) } + self }
}

extension String {
  fileprivate var sshString: [UInt8] { utf8.sshString }
}
