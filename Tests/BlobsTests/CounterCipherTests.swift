import BlobCrypto
import Blobs
import Testing

struct CounterCipherTests {
  private let key = bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
  private let counter = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")

  /// NIST SP 800-38A, F.5.5 and F.5.6, four blocks.
  @Test func matchesTheVectorOfNIST() {
    let plain = bytes(
      "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
    let encrypted = bytes(
      "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        + "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6")
    #expect(apply(key, counter, to: plain) == encrypted)
    #expect(apply(key, counter, to: encrypted) == plain)
  }

  /// The expected bytes come from `openssl enc -aes-256-ctr` with zeros as input.
  @Test func counterCarriesOverAllItsBytes() {
    let counter = [UInt8](repeating: 0xFF, count: 15) + [0xFE]
    let expected = bytes(
      "63e5b402b51e48ddfaedf9de99cc2744e999e41d4ca770da5387117b5d8f57eef29000b62a499fd0a9f39a6add2e7780"
        + "f05d76ae4ab99fe5a6f69b3148c2363d0ebcb5deb52c83bd08a8a935182c9199")
    let zeros = [UInt8](repeating: 0, count: 80)
    #expect(apply(Array(0..<32), counter, to: zeros) == expected)
    for offset in 0..<80 {
      #expect(apply(Array(0..<32), counter, to: Array(zeros[offset...]), at: offset) == Array(expected[offset...]))
    }
  }

  @Test func farOffsetsAreReachedAtOnce() {
    // Block 2^59 of a counter that starts at 0 is block 0 of a counter that starts at 2^59.
    let later = [0, 0, 0, 0, 0, 0, 0, 0, 0x07, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] as [UInt8]
    let zero = [UInt8](repeating: 0, count: 16)
    let text = [UInt8]("the last bytes there can be".utf8)
    #expect(apply(key, zero, to: text, at: Int(Int64.max / 16 * 16)) == apply(key, later, to: text))
  }

  /// RFC 5869, A.1 to A.3.
  @Test func derivationMatchesTheVectorsOfItsRFC() {
    #expect(
      hkdf([UInt8](repeating: 0x0B, count: 22), salt: Array(0...0x0C), info: Array(0xF0...0xF9), count: 42)
        == bytes("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
    #expect(
      hkdf(Array(0...0x4F), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF), count: 82)
        == bytes(
          "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"))
    #expect(
      hkdf([UInt8](repeating: 0x0B, count: 22), info: [], count: 42)
        == bytes("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
  }
}

private func apply(_ key: [UInt8], _ counter: [UInt8], to text: [UInt8], at offset: Int = 0) -> [UInt8] {
  var text = text
  text.withUnsafeMutableBytes { CounterCipher(key: key, counter: counter, at: Int64(offset)).apply(to: $0) }
  return text
}

/// Decodes hexadecimal digits.
func bytes(_ digits: String) -> [UInt8] {
  let digits = Array(digits)
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16)! }
}
