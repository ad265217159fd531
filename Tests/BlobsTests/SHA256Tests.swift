import BlobCrypto
import Testing

@testable import Blobs

struct SHA256Tests {
  /// All positions of the padding: the lengths around the ends of one and of two blocks.
  @Test func agreesWithLibcrypto() {
    var random = SystemRandomNumberGenerator()
    for count in Array(0...260) + [4095, 4096, 1_000_003] {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      #expect(SHA256.value(of: bytes) == Digest.value(of: bytes, .sha256), "\(count) bytes")
    }
  }

  @Test func agreesWithThePublishedVector() {
    #expect(
      SHA256.hex(of: Array("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }
}
