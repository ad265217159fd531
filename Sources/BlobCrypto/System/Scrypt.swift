import Blobs

#if !canImport(CryptoKit)
  import CCrypto
#endif

/// A key from a passphrase. RFC 7914.
enum Scrypt {
  #if canImport(CryptoKit)
    /// Apple's libraries have no scrypt.
    static let isKnown = false
  #else
    static let isKnown = true
  #endif

  /// 32 bytes, with N = 2^`logarithm`, r = 8 and p = 1: it takes 2^(`logarithm` - 10) MiB of memory while it runs, and
  /// some 4 ms for each of these. nil: there is no scrypt here, or not enough memory.
  static func key(_ passphrase: [UInt8], salt: [UInt8], logarithm: Int) -> [UInt8]? {
    precondition(1...30 ~= logarithm)
    #if canImport(CryptoKit)
      return nil
    #else
      var key = [UInt8](repeating: 0, count: 32)
      let (cost, block) = (UInt64(1) << UInt64(logarithm), UInt64(8))
      // The limit includes a few blocks of working memory.
      let most = 128 * block * (cost + 64)
      let status = passphrase.withUnsafeBytes { passphrase in
        EVP_PBE_scrypt(
          passphrase.bindMemory(to: CChar.self).baseAddress, passphrase.count, salt, salt.count, cost, block, 1, most,
          &key, key.count)
      }
      return status == 1 ? key : nil
    #endif
  }
}
