// AES-256 in counter mode by the system's library. Its owner calls `free` when it is done with it. It belongs to one thread
// at a time.

#if canImport(CommonCrypto)
  import CommonCrypto

  struct SystemCounterMode {
    /// The most bytes that `apply` takes.
    static let limit = 1 << 30
    private let context: CCCryptorRef?

    /// `key` has 32 bytes, and `counter`, that of the first block, has 16.
    init(key: [UInt8], counter: [UInt8]) {
      var context: CCCryptorRef?
      let status = CCCryptorCreateWithMode(
        CCOperation(kCCEncrypt), CCMode(kCCModeCTR), CCAlgorithm(kCCAlgorithmAES), CCPadding(ccNoPadding), counter, key,
        key.count, nil, 0, 0, CCModeOptions(kCCModeOptionCTR_BE), &context)
      precondition(status == kCCSuccess, "CommonCrypto has no AES-256-CTR here")
      self.context = context
    }

    func free() { CCCryptorRelease(context) }

    /// Encrypts, or decrypts, the next bytes in place.
    func apply(to bytes: UnsafeMutableRawBufferPointer) {
      var count = 0
      let status = CCCryptorUpdate(context, bytes.baseAddress, bytes.count, bytes.baseAddress, bytes.count, &count)
      precondition(status == kCCSuccess && count == bytes.count, "CommonCrypto: AES-256-CTR failed")
    }
  }
#else
  import CCrypto

  struct SystemCounterMode {
    /// The most bytes that `apply` takes: libcrypto counts in 32 bits.
    static let limit = 1 << 30
    private let context: OpaquePointer

    /// `key` has 32 bytes, and `counter`, that of the first block, has 16.
    init(key: [UInt8], counter: [UInt8]) {
      context = EVP_CIPHER_CTX_new()!  // nil only when memory has run out
      let status = EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nil, key, counter)
      precondition(status == 1, "libcrypto has no AES-256-CTR here")
    }

    func free() { EVP_CIPHER_CTX_free(context) }

    /// Encrypts, or decrypts, the next bytes in place.
    func apply(to bytes: UnsafeMutableRawBufferPointer) {
      var count: Int32 = 0
      let status = EVP_EncryptUpdate(context, bytes.baseAddress, &count, bytes.baseAddress, Int32(bytes.count))
      precondition(status == 1 && count == bytes.count, "libcrypto: AES-256-CTR failed")
    }
  }
#endif
