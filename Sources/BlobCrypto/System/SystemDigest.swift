import Blobs

// The running digest of one of the algorithms that the system's library computes. Its owner calls `free` when it is done
// with it. It belongs to one thread at a time.

#if canImport(CryptoKit)
  import CryptoKit

  struct SystemDigest {
    private var hash: any HashFunction

    static func isKnown(_ algorithm: DigestAlgorithm) -> Bool { make(algorithm) != nil }

    init(_ algorithm: DigestAlgorithm) {
      guard let hash = Self.make(algorithm) else { preconditionFailure("CryptoKit has no \(algorithm)") }
      self.hash = hash
    }

    func free() {}

    mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

    func value() -> [UInt8] { Self.value(of: hash) }

    static func value(of bytes: [UInt8], _ algorithm: DigestAlgorithm) -> [UInt8] {
      var digest = SystemDigest(algorithm)
      bytes.withUnsafeBytes { digest.update($0) }
      return digest.value()
    }

    private static func value(of hash: some HashFunction) -> [UInt8] { Array(hash.finalize()) }

    private static func make(_ algorithm: DigestAlgorithm) -> (any HashFunction)? {
      switch algorithm {
      case .md5: Insecure.MD5()
      case .sha1: Insecure.SHA1()
      case .sha256: SHA256()
      case .sha384: SHA384()
      case .sha512: SHA512()
      default: nil
      }
    }
  }
#else
  import CCrypto

  struct SystemDigest {
    private let context: OpaquePointer

    /// false also where the system's policy forbids the algorithm (MD5 under FIPS).
    static func isKnown(_ algorithm: DigestAlgorithm) -> Bool { methods[algorithm.name] != nil }

    init(_ algorithm: DigestAlgorithm) {
      context = EVP_MD_CTX_new()!  // nil only when memory has run out
      let status = methods[algorithm.name].map { EVP_DigestInit_ex(context, $0, nil) }
      precondition(status == 1, "libcrypto has no \(algorithm) here")
    }

    func free() { EVP_MD_CTX_free(context) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      let status = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
      precondition(status == 1, "libcrypto: EVP_DigestUpdate failed")
    }

    func value() -> [UInt8] {
      let copy = EVP_MD_CTX_new()
      defer { EVP_MD_CTX_free(copy) }
      var count: UInt32 = 0
      return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, written in
        let status = EVP_MD_CTX_copy_ex(copy, context) & EVP_DigestFinal_ex(copy, buffer.baseAddress, &count)
        precondition(status == 1, "libcrypto: EVP_DigestFinal_ex failed")
        written = Int(count)
      }
    }

    static func value(of bytes: [UInt8], _ algorithm: DigestAlgorithm) -> [UInt8] {
      guard let method = methods[algorithm.name] else { preconditionFailure("libcrypto has no \(algorithm) here") }
      var count: UInt32 = 0
      return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, written in
        let status = EVP_Digest(bytes, bytes.count, buffer.baseAddress, &count, method, nil)
        precondition(status == 1, "libcrypto: EVP_Digest failed")
        written = Int(count)
      }
    }
  }

  /// libcrypto's methods by our names, without those that the system's policy forbids. They are kept because fetching one
  /// takes longer than digesting a short text.
  private nonisolated(unsafe) let methods: [String: OpaquePointer] = Dictionary(
    uniqueKeysWithValues: DigestAlgorithm.all.compactMap { algorithm in
      algorithm.isOurs ? nil : EVP_MD_fetch(nil, algorithm.name, nil).map { (algorithm.name, $0) }
    })
#endif
