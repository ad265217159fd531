import Blobs
import Synchronization

/// A source whose bytes are encrypted as they are read (AES-256-CTR). The length stays the same, and reading may start
/// at any offset.
///
/// **The data is encrypted but not authenticated**: anyone who can change the encrypted bytes can flip chosen bits of
/// the plaintext, and this is not detected. Verify a digest of your own if that matters.
///
/// Key and counter are derived from the caller's key, the name and the source's validator. So a part that is sent again
/// has the same bytes, and different versions never use the same keystream: two plaintexts under one keystream would
/// reveal each other. Therefore the version is checked after each read, before the bytes are returned. The same bytes
/// of the same version under the same name are always encrypted the same way.
///
/// A source that can be read only once and has no validator, such as a stream that is still being written, gets a
/// random version with each `EncryptingSource`. It is read from the first byte to the last, and no reader goes back: no
/// byte of the keystream is used a second time.
///
/// Store `validator.version` of its `info` with the encrypted bytes: `DecryptingSource` requires it. It reveals nothing
/// to anyone without the key.
public struct EncryptingSource: BlobSource {
  private let source: any BlobSource
  private let key: EncryptionKey
  private let name: String
  private let pass = SinglePass()

  /// `name` distinguishes this blob from all others under the same key, as its path would: two files of the same size
  /// and time, or two pages with the same entity tag, may have the same validator. To resume, use the same name.
  public init(_ source: any BlobSource, key: EncryptionKey, name: String) {
    self.source = source
    self.key = key
    self.name = name
  }

  public var access: BlobAccess { source.access }

  /// Length and preferred block size are the source's. The version is that of the encrypted bytes and differs for each
  /// key, name and validator. Throws `.unsupported` for a source without a validator that can be read more than once:
  /// it could change unnoticed in between.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let info = try source.info(cancel)
    return info.with(version: try version(of: info))
  }

  /// A source without a validator can be opened only where its last reader stopped. Elsewhere this throws
  /// `.outOfRange`, and `.unsupported` while that reader exists.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try openCipher(source, at: offset, cancel)
    let version = try version(of: reader.info)
    let isOnce = reader.info.validator == nil
    if isOnce { try pass.begin(at: offset, name) }
    return CipherReader(
      reader, reader.info.with(version: version), CounterCipher(key, version, at: offset),
      asksBeforeEach: !isOnce, isOnce ? pass : nil)
  }

  private func version(of info: BlobInfo) throws(BlobError) -> String {
    guard let validator = info.validator else {
      guard source.access == .sequential else {
        throw BlobError(.unsupported, "encrypt \(name): its source cannot tell one version from another")
      }
      return Digest.hex(key.derive(32, "fullbore version of one pass", [name, pass.nonce]))
    }
    return Digest.hex(key.derive(32, "fullbore version", [name, validator.version, validator.instance]))
  }
}

/// The progress of encrypting a source without versions, under a version that is used only once. Copies of the source
/// share it.
private final class SinglePass: Sendable {
  private struct State {
    var offset: Int64 = 0
    var isRead = false
  }
  /// 256 random bits from the system, in hexadecimal.
  let nonce: String
  private let state = Mutex(State())

  init() {
    var random = SystemRandomNumberGenerator()
    nonce = Digest.hex((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) })
  }

  func begin(at offset: Int64, _ name: String) throws(BlobError) {
    let found = state.withLock { state in
      let found = state
      if !state.isRead, state.offset == offset { state.isRead = true }
      return found
    }
    if found.isRead { throw BlobError(.unsupported, "encrypt \(name): another reader is at it") }
    if found.offset != offset {
      throw BlobError(
        .outOfRange, "encrypt \(name) from byte \(offset): it is at byte \(found.offset), and is read once only")
    }
  }

  /// Called before the bytes are returned.
  func encrypted(_ count: Int) { state.withLock { $0.offset += Int64(count) } }

  func ended() { state.withLock { $0.isRead = false } }
}

/// The plaintext of the bytes of an `EncryptingSource`, from any offset.
///
/// A wrong key or wrong bytes are not detected: the result is random bytes.
public struct DecryptingSource: BlobSource {
  private let source: any BlobSource
  private let key: EncryptionKey
  private let version: String

  /// `version` is `validator.version` of the `EncryptingSource`'s `info`.
  public init(_ source: any BlobSource, key: EncryptionKey, version: String) {
    self.source = source
    self.key = key
    self.version = version
  }

  public var access: BlobAccess { source.access }

  /// Like the source's, except the validator, which depends on the key and the version; nil if the source has none.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { plain(try source.info(cancel)) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try openCipher(source, at: offset, cancel)
    return CipherReader(reader, plain(reader.info), CounterCipher(key, version, at: offset), asksBeforeEach: false)
  }

  private func plain(_ info: BlobInfo) -> BlobInfo {
    guard let validator = info.validator else { return info }
    let parts = [version, validator.version, validator.instance]
    return info.with(version: Digest.hex(key.derive(32, "fullbore plain version", parts)))
  }
}

/// Not every source checks its offset, and a counter before the first one would belong to another blob.
private func openCipher(
  _ source: any BlobSource, at offset: Int64, _ cancel: Cancellation
) throws(BlobError) -> any BlobReader {
  if offset < 0 { throw BlobError(.outOfRange, "open an encrypted source at byte \(offset)") }
  return try source.open(at: offset, cancel)
}

private final class CipherReader: BlobReader {
  let info: BlobInfo
  private let reader: any BlobReader
  private let cipher: CounterCipher
  private let asksBeforeEach: Bool
  /// nil: the source has versions, and its bytes may be encrypted again.
  private let pass: SinglePass?

  init(
    _ reader: any BlobReader, _ info: BlobInfo, _ cipher: CounterCipher, asksBeforeEach: Bool, _ pass: SinglePass? = nil
  ) {
    self.reader = reader
    self.info = info
    self.cipher = cipher
    self.asksBeforeEach = asksBeforeEach
    self.pass = pass
  }

  deinit { pass?.ended() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count: Int
    do {
      count = try reader.readChecked(into: buffer)
      if asksBeforeEach { try reader.finish() }
    } catch {
      // The buffer of a failed read must not contain plaintext.
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      throw error
    }
    pass?.encrypted(count)
    cipher.apply(to: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)))
    return count
  }

  // The bytes in the file are not the encrypted bytes.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}

extension CounterCipher {
  fileprivate convenience init(_ key: EncryptionKey, _ version: String, at offset: Int64) {
    let bytes = key.derive(48, "fullbore aes-256-ctr", [version])
    self.init(key: Array(bytes[..<32]), counter: Array(bytes[32...]), at: offset)
  }
}

extension BlobInfo {
  fileprivate func with(version: String) -> BlobInfo {
    BlobInfo(length: length, validator: Validator(version: version), preferredRead: preferredRead)
  }
}
