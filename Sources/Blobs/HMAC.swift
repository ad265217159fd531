import CCrypto

/// HMAC-SHA-256 of bytes at hand. RFC 2104.
package enum HMAC {
  package static func sha256(_ message: some Sequence<UInt8>, key: [UInt8]) -> [UInt8] {
    let message = Array(message)
    var count: UInt32 = 0
    return [UInt8](unsafeUninitializedCapacity: 32) { buffer, written in
      let result = code(EVP_sha256(), key, key.count, message, message.count, buffer.baseAddress, &count)
      precondition(result != nil && count == 32, "libcrypto has no HMAC-SHA-256 here")
      written = 32
    }
  }
}

/// The C function has the name of the enum above, and would not be found in it.
private func code(
  _ method: OpaquePointer?, _ key: [UInt8], _ keyCount: Int, _ message: [UInt8], _ count: Int,
  _ value: UnsafeMutablePointer<UInt8>?, _ valueCount: inout UInt32
) -> UnsafeMutablePointer<UInt8>? {
  CCrypto.HMAC(method, key, Int32(keyCount), message, count, value, &valueCount)
}
