#if canImport(CommonCrypto)
  import CommonCrypto
#else
  import CCrypto
#endif

/// AES-256 in counter mode (NIST SP 800-38A), from any byte on: what encrypts also decrypts.
///
/// Belongs to one thread at a time.
package final class CounterCipher {
  #if canImport(CommonCrypto)
    private var context: CCCryptorRef?
  #else
    private let context: OpaquePointer
  #endif

  /// `key` has 32 bytes; `counter`, of 16, is that of byte 0. `offset` is the byte that `apply` begins with.
  package init(key: [UInt8], counter: [UInt8], at offset: Int64) {
    precondition(key.count == 32 && counter.count == 16 && offset >= 0)
    let first = Self.advance(counter, by: UInt64(offset / 16))
    #if canImport(CommonCrypto)
      let status = CCCryptorCreateWithMode(
        CCOperation(kCCEncrypt), CCMode(kCCModeCTR), CCAlgorithm(kCCAlgorithmAES), CCPadding(ccNoPadding), first, key,
        key.count, nil, 0, 0, CCModeOptions(kCCModeOptionCTR_BE), &context)
      precondition(status == kCCSuccess, "CommonCrypto has no AES-256-CTR here")
    #else
      context = EVP_CIPHER_CTX_new()!  // nil only when memory has run out
      let status = EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nil, key, first)
      precondition(status == 1, "libcrypto has no AES-256-CTR here")
    #endif
    // The keystream of the bytes before `offset` in its block is not wanted.
    var skipped: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &skipped) { apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[..<Int(offset % 16)])) }
  }

  deinit {
    #if canImport(CommonCrypto)
      CCCryptorRelease(context)
    #else
      EVP_CIPHER_CTX_free(context)
    #endif
  }

  /// Encrypts, or decrypts, the next bytes in place.
  package func apply(to buffer: UnsafeMutableRawBufferPointer) {
    var rest = buffer
    while !rest.isEmpty {
      // libcrypto counts in 32 bits.
      let piece = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(1 << 30))
      #if canImport(CommonCrypto)
        var count = 0
        let status = CCCryptorUpdate(context, piece.baseAddress, piece.count, piece.baseAddress, piece.count, &count)
        precondition(status == kCCSuccess && count == piece.count, "CommonCrypto: AES-256-CTR failed")
      #else
        var count: Int32 = 0
        let status = EVP_EncryptUpdate(context, piece.baseAddress, &count, piece.baseAddress, Int32(piece.count))
        precondition(status == 1 && count == piece.count, "libcrypto: AES-256-CTR failed")
      #endif
      rest = UnsafeMutableRawBufferPointer(rebasing: rest.dropFirst(piece.count))
    }
  }

  /// A counter is one number of 128 bits, the highest first, and begins again at 0.
  private static func advance(_ counter: [UInt8], by blocks: UInt64) -> [UInt8] {
    var number = counter.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    number &+= UInt128(blocks)
    return (0..<16).map { UInt8(truncatingIfNeeded: number >> (120 - 8 * UInt128($0))) }
  }
}
