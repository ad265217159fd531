import BlobCrypto
import BlobTesting
import TestSupport
import Blobs
import Testing

struct EncryptingSourceTests {
  private let key: EncryptionKey
  private let text = (0..<40).map { UInt8(truncatingIfNeeded: $0 * 7) }
  private let validator = Validator(version: "size-time", instance: "device")

  init() throws { key = try EncryptionKey(Array(0..<32)) }

  /// The expected bytes were computed with Python's hmac and `openssl enc`: encrypted data must stay readable.
  @Test func formatNeverChanges() throws {
    let source = EncryptingSource(DataSource(text, validator: validator), key: key, name: "2026/ü.jpg")
    let version = "974c9ab41293d095a4651ed71ae293c0aeb94f6c36cd504eaaeb1daa21bc9ca6"
    #expect(try source.info() == BlobInfo(length: 40, validator: Validator(version: version)))
    let encrypted = try source.readAll(upTo: 7)
    #expect(encrypted == bytes("8016c4327ab2185c72c008788563a56a85e95dd2c5ba83fc8a5349e2b89996acfbdd4bda31b7e25b"))
    let back = DecryptingSource(DataSource(encrypted), key: key, version: version)
    for offset in 0...40 { #expect(try back.readAll(at: Int64(offset)) == Array(text[offset...])) }
  }

  @Test func nothingMeetsTheSameKeystreamTwice() throws {
    let other = try EncryptionKey(Array(1..<33))
    let zeros = [UInt8](repeating: 0, count: 64)
    func keystream(_ key: EncryptionKey, _ name: String, _ validator: Validator) throws -> [UInt8] {
      try EncryptingSource(DataSource(zeros, validator: validator), key: key, name: name).readAll()
    }
    let whole = DataSource(zeros + zeros, validator: validator)
    let streams =
      try [
        keystream(key, "a", validator), keystream(other, "a", validator), keystream(key, "b", validator),
        keystream(key, "a", Validator(version: "size-time-later", instance: "device")),
        keystream(key, "a", Validator(version: "size-time", instance: "other device")),
        keystream(key, "a", Validator(version: "size-timedevice")), keystream(key, "asize-time", validator),
      ]
      // Two ranges of the same version must be encrypted differently.
      + [0, 64].map { start in
        try EncryptingSource(SlicedSource(whole, start: start, length: 64), key: key, name: "a").readAll()
      }
    let blocks = streams.flatMap { stream in stride(from: 0, to: 64, by: 16).map { Array(stream[$0..<$0 + 16]) } }
    #expect(Set(blocks).count == blocks.count)
  }

  @Test func resumedAfterAChangeTheFileIsAnotherVersion() throws {
    let file = try TemporaryFile(text, age: .seconds(60))
    let source = EncryptingSource(file.source, key: key, name: "a")
    let before = try source.info()
    let first = try source.readAll()
    #expect(try source.readAll(at: 17) == Array(first[17...]), "the same version goes on with the same bytes")
    try file.overwrite([0xFF])
    #expect(try source.info().validator != before.validator)
    let again = try source.readAll()
    #expect(zip(first, again).filter(==).count < 10, "byte by byte it is another keystream")
  }

  @Test func changedBytesAreNotEncryptedUnderTheOldVersion() throws {
    let file = try TemporaryFile(text, age: .seconds(60))
    let reader = try EncryptingSource(file.source, key: key, name: "a").open(at: 0, Cancellation())
    _ = try readNext(reader, 10)
    try file.overwrite([0xFF], at: 20)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 30, alignment: 16)
    defer { buffer.deallocate() }
    #expect(failure { () throws(BlobError) in try reader.read(into: buffer) }?.code == .changed)
    #expect(buffer.allSatisfy { $0 == 0 }, "nor is anything plain left behind")
  }

  @Test func wrongKeyOrVersionGivesNoise() throws {
    let source = EncryptingSource(DataSource(text), key: key, name: "a")
    let encrypted = DataSource(try source.readAll())
    let version = try #require(source.info().validator?.version)
    let other = try EncryptionKey(Array(1..<33))
    let right = DecryptingSource(encrypted, key: key, version: version)
    #expect(try right.readAll() == text)
    for wrong in [
      DecryptingSource(encrypted, key: other, version: version), DecryptingSource(encrypted, key: key, version: "a"),
    ] {
      #expect(try wrong.readAll() != text)
      #expect(try wrong.info().validator != right.info().validator)
    }
    let nameless = DecryptingSource(PipeSource(BlobPipe()), key: key, version: version)
    #expect(try nameless.info().validator == nil)
  }

  @Test func shortKeyIsRefusedAndNoneIsShown() throws {
    #expect(failure { () throws(BlobError) in try EncryptionKey(Array(0..<31)) }?.code == .unsupported)
    let key = try EncryptionKey([UInt8](repeating: 77, count: 32))
    var dumped = ""
    let source = EncryptingSource(PatternSource(length: 0), key: key, name: "a")
    dump(source, to: &dumped)
    for shown in ["\(key)", String(reflecting: key), "\(source)", dumped] {
      // The key as a printed array, as a dump, and in hexadecimal. A random number may contain two sevens by chance.
      for bytes in ["77, 77", "- 77", "4d4d4d"] { #expect(!shown.contains(bytes)) }
    }
  }
}
