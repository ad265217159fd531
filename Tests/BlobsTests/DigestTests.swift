import BlobTesting
import Testing

@testable import BlobCrypto
@testable import Blobs

struct DigestTests {
  static let vectors: [(String, String, String)] = [
    ("md5", "", "d41d8cd98f00b204e9800998ecf8427e"),
    ("md5", "abc", "900150983cd24fb0d6963f7d28e17f72"),
    ("sha1", "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("sha256", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "sha384", "abc",
      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    ),
    (
      "sha512", "abc",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
    (
      "blake2b512", "abc",
      "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
        + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
    ),
    ("crc32c", "", "00000000"),
    ("crc64nvme", "", "0000000000000000"),
    ("crc64nvme", "123456789", "ae8b14860a799888"),
    ("crc32c", "123456789", "e3069283"),
    // These are what the Python package xxhash 4.1 computes.
    ("xxh64", "", "ef46db3751d8e999"),
    ("xxh64", "abc", "44bc2cf5ad770999"),
    ("xxh3", "", "2d06800538d394c2"),
    ("xxh3", "abc", "78af5f94892f3950"),
    ("xxh128", "", "99aa06d3014798d86001c324468d497f"),
    ("xxh128", "abc", "06b05ab6733a618578af5f94892f3950"),
  ]

  @Test(arguments: vectors)
  func agreesWithThePublishedVectors(_ name: String, _ text: String, _ hex: String) throws {
    let algorithm = try #require(Digest.Algorithm(name))
    #expect(Digest.hex(of: Array(text.utf8), algorithm) == hex)
  }

  @Test func algorithmsGoByTheNamesPeopleUse() {
    #expect(Digest.Algorithm("SHA-256") == .sha256)
    #expect(Digest.Algorithm("Sha1") == .sha1)
    #expect(Digest.Algorithm("crc32") == nil)
    #expect(Digest.Algorithm("") == nil)
    #expect(Digest.Algorithm.all.allSatisfy { Digest.Algorithm($0.name) == $0 })
  }

  @Test(arguments: [Digest.Algorithm.crc32c, .crc64nvme])
  func checksumsOfPartsMakeThatOfTheWhole(_ algorithm: Digest.Algorithm) {
    let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8)) }
    for (first, second) in [(0, 0), (0, 5000), (5000, 0), (1, 4999), (4097, 903), (2500, 2500)] {
      let values = [bytes[..<first], bytes[first..<first + second]].map { Digest.value(of: Array($0), algorithm) }
      let joined = Digest.joined(values[0], values[1], count: Int64(second), algorithm)
      #expect(joined == Digest.value(of: Array(bytes[..<(first + second)]), algorithm), "\(first) and \(second)")
    }
    // Beyond 32 bits: the digest of three times the length equals three joined digests.
    let value = Digest.value(of: bytes, algorithm)
    let twice = Digest.joined(value, value, count: 5 << 40, algorithm)!
    #expect(
      Digest.joined(Digest.joined(value, value, count: 5 << 40, algorithm)!, value, count: 5 << 40, algorithm)
        == Digest.joined(value, Digest.joined(value, value, count: 5 << 40, algorithm)!, count: 10 << 40, algorithm))
    #expect(twice != value && Digest.joined(value, value, count: 1, .sha256) == nil)
  }

  @Test func valueMayBeAskedInTheMiddle() {
    let digest = Digest(.sha256)
    "a".utf8.withContiguousStorageIfAvailable { digest.update(UnsafeRawBufferPointer($0)) }
    #expect(digest.value() == Digest.value(of: Array("a".utf8), .sha256))
    digest.update(UnsafeRawBufferPointer(start: nil, count: 0))
    "bc".utf8.withContiguousStorageIfAvailable { digest.update(UnsafeRawBufferPointer($0)) }
    #expect(digest.hexValue() == Digest.hex(of: Array("abc".utf8), .sha256))
    digest.reset()
    #expect(digest.value() == Digest.value(of: [], .sha256))
  }

  /// RFC 3720 §B.4.
  @Test func theProcessorCountsAsTheTableDoes() {
    let cases: [([UInt8], String)] = [
      ([UInt8](repeating: 0, count: 32), "8a9136aa"), ([UInt8](repeating: 0xFF, count: 32), "62a8ab43"),
      ((0..<32).map { $0 }, "46dd794e"), ((0..<32).reversed().map { $0 }, "113fdb5c"),
    ]
    for (bytes, hex) in cases { #expect(Digest.hex(of: bytes, .crc32c) == hex) }
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8)) }
    var (fast, slow) = (CRC32C(), CRC32C(usesHardware: false))
    for (start, end) in [
      (0, 0), (0, 1), (1, 8), (8, 16), (16, 33), (33, 4096), (4096, 10_000), (10_000, 100_000), (1, 12_289),
      (0, 24_577), (5, 36_870),
    ] {
      bytes[start..<end].withUnsafeBytes {
        fast.update($0)
        slow.update($0)
      }
      #expect(fast.value == slow.value)
    }
  }

  @Test func sizesAreThoseOfTheValues() {
    for algorithm in Digest.Algorithm.all { #expect(Digest.value(of: [], algorithm).count == algorithm.size) }
  }

  @Test func hexHasTwoDigitsForEveryByte() {
    #expect(Digest.hex([0, 1, 0x7F, 0x80, 0xFF]) == "00017f80ff")
  }
}
