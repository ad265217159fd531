#if canImport(CryptoKit)
  import CryptoKit
#else
  import CCrypto
#endif

/// ChaCha20-Poly1305 (RFC 8439) under one key. It belongs to one thread at a time.
final class ChunkCipher {
  /// Bytes that authenticate a chunk, after its ciphertext.
  static let tagCount = 16
  static let keyCount = 32
  static let nonceCount = 12

  #if canImport(CryptoKit)
    private let key: SymmetricKey
  #else
    private let context: OpaquePointer
  #endif

  /// `key` has `keyCount` bytes.
  init(key: [UInt8]) {
    precondition(key.count == Self.keyCount)
    #if canImport(CryptoKit)
      self.key = SymmetricKey(data: key)
    #else
      context = EVP_CIPHER_CTX_new()!  // nil only when memory has run out
      let status = EVP_CipherInit_ex(context, chaCha20Poly1305, nil, key, nil, 1)
      precondition(status == 1, "libcrypto has no ChaCha20-Poly1305 here")
    #endif
  }

  #if !canImport(CryptoKit)
    deinit { EVP_CIPHER_CTX_free(context) }
  #endif

  /// Encrypts `buffer` in place, all but its last `tagCount` bytes, which become the tag. Two contents must never be
  /// encrypted under one nonce.
  func seal(_ buffer: UnsafeMutableRawBufferPointer, nonce: [UInt8]) {
    precondition(nonce.count == Self.nonceCount && buffer.count >= Self.tagCount)
    let text = UnsafeMutableRawBufferPointer(rebasing: buffer.dropLast(Self.tagCount))
    let tag = UnsafeMutableRawBufferPointer(rebasing: buffer.suffix(Self.tagCount))
    #if canImport(CryptoKit)
      // CryptoKit has no call that encrypts in place.
      guard let nonce = try? ChaChaPoly.Nonce(data: nonce),
        let box = try? ChaChaPoly.seal(UnsafeRawBufferPointer(text), using: key, nonce: nonce)
      else { preconditionFailure("CryptoKit has no ChaCha20-Poly1305 here") }
      text.copyBytes(from: box.ciphertext)
      tag.copyBytes(from: box.tag)
    #else
      let isDone =
        EVP_CipherInit_ex(context, nil, nil, nil, nonce, 1) == 1 && apply(to: text)
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount), tag.baseAddress) == 1
      precondition(isDone, "libcrypto: ChaCha20-Poly1305 failed")
    #endif
  }

  /// Decrypts `buffer`, which ends with the tag, in place. Returns false, and leaves zeros, if it is not what was
  /// encrypted under this key and nonce.
  func open(_ buffer: UnsafeMutableRawBufferPointer, nonce: [UInt8]) -> Bool {
    precondition(nonce.count == Self.nonceCount)
    if buffer.count < Self.tagCount { return false }
    let text = UnsafeMutableRawBufferPointer(rebasing: buffer.dropLast(Self.tagCount))
    let tag = UnsafeMutableRawBufferPointer(rebasing: buffer.suffix(Self.tagCount))
    #if canImport(CryptoKit)
      guard let nonce = try? ChaChaPoly.Nonce(data: nonce),
        let box = try? ChaChaPoly.SealedBox(
          nonce: nonce, ciphertext: UnsafeRawBufferPointer(text), tag: UnsafeRawBufferPointer(tag)),
        let plain = try? ChaChaPoly.open(box, using: key)
      else {
        buffer.initializeMemory(as: UInt8.self, repeating: 0)
        return false
      }
      text.copyBytes(from: plain)
      return true
    #else
      let isDone =
        EVP_CipherInit_ex(context, nil, nil, nil, nonce, 0) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagCount), tag.baseAddress) == 1
        && apply(to: text)
      if !isDone { buffer.initializeMemory(as: UInt8.self, repeating: 0) }
      return isDone
    #endif
  }

  #if !canImport(CryptoKit)
    private func apply(to text: UnsafeMutableRawBufferPointer) -> Bool {
      var (count, last): (Int32, Int32) = (0, 0)
      let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
      if !text.isEmpty, EVP_CipherUpdate(context, start, &count, start, Int32(text.count)) != 1 { return false }
      // Nothing is left to write: the cipher is a stream.
      return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.tagCount) { rest in
        EVP_CipherFinal_ex(context, rest.baseAddress, &last) == 1 && count == text.count && last == 0
      }
    }
  #endif
}

extension ChunkCipher {
  /// The ciphertext and the tag of a short text. For keys that are used once: the nonce is zero unless given.
  static func seal(_ text: [UInt8], key: [UInt8], nonce: [UInt8]? = nil) -> [UInt8] {
    var bytes = text + [UInt8](repeating: 0, count: tagCount)
    bytes.withUnsafeMutableBytes { ChunkCipher(key: key).seal($0, nonce: nonce ?? zeroNonce) }
    return bytes
  }

  /// nil: `bytes` are not what was encrypted under this key and nonce.
  static func open(_ bytes: [UInt8], key: [UInt8], nonce: [UInt8]? = nil) -> [UInt8]? {
    var text = bytes
    let isRight = text.withUnsafeMutableBytes { ChunkCipher(key: key).open($0, nonce: nonce ?? zeroNonce) }
    return isRight ? Array(text.dropLast(tagCount)) : nil
  }

  private static var zeroNonce: [UInt8] { [UInt8](repeating: 0, count: nonceCount) }
}

#if !canImport(CryptoKit)
  /// libcrypto's method. It is kept because fetching it takes longer than a small file takes to encrypt.
  private nonisolated(unsafe) let chaCha20Poly1305 = EVP_CIPHER_fetch(nil, "ChaCha20-Poly1305", nil)
#endif
