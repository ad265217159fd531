import BlobTesting
import Blobs
import TestSupport
import Testing

@testable import BlobCrypto

struct SealedSourceTests {
  private let text = PatternSource(length: 200_000, seed: 9).bytes(count: 200_000)

  private func open(_ sealed: [UInt8], at offset: Int64 = 0) throws(BlobError) -> [UInt8] {
    try UnsealedSource(DataSource(sealed), with: [sealKey.identity]).readAll(at: offset, upTo: 70_000)
  }

  @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 3_000_001], [true, false])
  func aSealedSourceCanBeOpened(_ length: Int64, _ knowsLength: Bool) throws {
    let pattern = PatternSource(length: length, seed: 3, knowsLength: knowsLength)
    let source = try SealedSource(pattern, to: [sealKey.recipient])
    let sealed = try source.readAll(upTo: 50_001)
    if knowsLength { #expect(try source.info().length == Int64(sealed.count)) }
    #expect(try open(sealed) == pattern.bytes(count: Int(length)))
    for offset in [0, 1, 65_535, 65_536, 65_537, length - 1, length] where 0...length ~= offset {
      #expect(try open(sealed, at: offset) == pattern.bytes(at: offset, count: Int(length - offset)), "from \(offset)")
    }
    for offset in [1, 200, 65_500, 65_752, 65_753, sealed.count] where offset <= sealed.count {
      #expect(try source.readAll(at: Int64(offset), upTo: 40_000) == Array(sealed[offset...]), "from \(offset)")
    }
  }

  /// Large reads have their chunks made in the caller's memory.
  @Test(arguments: [65_568, 65_569, 200_000, 1 << 20], [65_536, 131_072, 500_000] as [Int64])
  func largeReadsGiveTheSameBytes(_ piece: Int, _ length: Int64) throws {
    let pattern = PatternSource(length: length, seed: 3)
    let source = try SealedSource(pattern, to: [sealKey.recipient])
    let sealed = try source.readAll(upTo: 1000)
    #expect(try source.readAll(upTo: piece) == sealed)
    for offset in [1, 200, 65_752, 70_000] where offset < sealed.count {
      #expect(try source.readAll(at: Int64(offset), upTo: piece) == Array(sealed[offset...]), "from \(offset)")
    }
    let unsealed = UnsealedSource(DataSource(sealed), with: [sealKey.identity])
    #expect(try unsealed.readAll(upTo: piece) == pattern.bytes(count: Int(length)))
    #expect(try unsealed.readAll(at: 65_000, upTo: piece) == pattern.bytes(at: 65_000, count: Int(length) - 65_000))
  }

  /// The source fails within the third chunk, so many times, and then goes on.
  @Test(arguments: [1, 2, 3]) func nothingIsLostWhenTheSourceFails(_ times: Int) throws {
    let pattern = PatternSource(length: 500_000, seed: 3, access: .sequential)
    let error = BlobError(.io, "the card does not answer")
    let faulty = FaultySource(pattern, .fail(at: 150_000, error, times: times))
    let reader = try SealedSource(faulty, to: [sealKey.recipient]).open(at: 0, Cancellation())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    var (sealed, failures): ([UInt8], Int) = ([], 0)
    while true {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      do throws(BlobError) {
        let count = try reader.read(into: buffer)
        if count == 0 { break }
        sealed += buffer.prefix(count)
        #expect(buffer.dropFirst(count).allSatisfy { $0 == 0 }, "no plaintext is left after the \(count) bytes")
      } catch {
        failures += 1
        #expect(buffer.allSatisfy { $0 == 0 }, "no plaintext is left")
        if failures > times { throw error }
      }
    }
    #expect(failures == times - 1, "the chunks before the first failure were returned")
    #expect(try open(sealed) == pattern.bytes(count: 500_000))
  }

  /// What arrives in pieces is opened as what is read.
  @Test(arguments: [0, 1, 65_536, 65_537, 200_000], [1, 1000, 65_552, 1 << 20])
  func aSealedFileThatArrivesInPiecesCanBeOpened(_ length: Int64, _ piece: Int) throws {
    // One byte at a time is enough for a small file.
    if piece == 1, length > 1 { return }
    let pattern = PatternSource(length: length, seed: 3)
    let sealed = try SealedSource(pattern, to: [sealKey.recipient]).readAll()
    func opened(_ bytes: [UInt8]) throws(BlobError) -> [UInt8] {
      let opener = SealOpener(with: [sealKey.identity])
      var plain: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: piece) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 1)
        defer { copy.deallocate() }
        let some = bytes[start..<min(start + piece, bytes.count)]
        copy.copyBytes(from: some)
        try opener.append(UnsafeRawBufferPointer(rebasing: copy[..<some.count])) { plain += $0 }
      }
      try opener.end { plain += $0 }
      return plain
    }
    #expect(try opened(sealed) == pattern.bytes(count: Int(length)))
    for place in [0, sealed.count / 2, sealed.count - 1] {
      var changed = sealed
      changed[place] ^= 1
      #expect(failure { () throws(BlobError) in try opened(changed) } != nil, "a change at \(place)")
    }
    for end in [0, 10, sealed.count - 1, sealed.count - 17, sealed.count - 65_552] where end >= 0 {
      #expect(failure { () throws(BlobError) in try opened(Array(sealed[..<end])) } != nil, "a cut at \(end)")
    }
    #expect(failure { () throws(BlobError) in try opened(sealed + [0]) } != nil)
  }

  @Test func eachSourceHasItsOwnKey() throws {
    let source = DataSource(text)
    let (one, other) = (
      try SealedSource(source, to: [sealKey.recipient]), try SealedSource(source, to: [sealKey.recipient])
    )
    #expect(try one.info().validator != other.info().validator)
    let chunks = try [one, other].map { try $0.readAll().suffix(text.count) }
    #expect(zip(chunks[0], chunks[1]).filter(==).count < text.count / 100)
    #expect(try one.readAll() == one.readAll(), "and copies share it")
  }

  @Test func everyRecipientOpensIt() throws {
    let stranger = try SealRecipient("age1h7zun33g5auvazuzl7f6j3c4q69k4ngxh3nycvwhpt37s4nytfhqyh0wkz")
    let sealed = try SealedSource(DataSource(text), to: [stranger, sealKey.recipient]).readAll()
    #expect(try open(sealed) == text)
    let other = try SealedSource(DataSource(text), to: [stranger]).readAll()
    #expect(failure { () throws(BlobError) in try open(other) }?.code == .permission)
  }

  @Test func aPassphraseOpensIt() throws {
    let passphrase = try SealRecipient.passphrase("correct horse", logarithm: 10)
    let sealed = DataSource(try SealedSource(DataSource(text), to: [passphrase]).readAll())
    #expect(try UnsealedSource(sealed, with: [.passphrase("correct horse")]).readAll() == text)
    let wrong = UnsealedSource(sealed, with: [.passphrase("wrong horse")])
    #expect(failure { () throws(BlobError) in try wrong.readAll() }?.code == .permission)
    let both = [passphrase, sealKey.recipient]
    #expect(failure { () throws(BlobError) in try SealedSource(DataSource(text), to: both) }?.code == .unsupported)
  }

  /// A stranger's file could ask for all memory.
  @Test(arguments: ["21", "22", "99"]) func onlySoMuchWorkIsDone(_ asked: String) throws {
    let passphrase = try SealRecipient.passphrase("correct horse", logarithm: 10)
    var sealed = try SealedSource(DataSource(text), to: [passphrase]).readAll()
    let place = try #require(sealed.firstRange(of: Array(" 10\n".utf8)))
    sealed.replaceSubrange(place, with: Array(" \(asked)\n".utf8))
    let source = UnsealedSource(DataSource(sealed), with: [.passphrase("correct horse")])
    let error = try #require(failure { () throws(BlobError) in try source.readAll() })
    #expect(error.code == .unsupported && error.message.contains("'age -d' opens it"), "\(error.message)")
  }

  /// Test cases 1 and 6 of RFC 4231.
  @Test func codesAreThoseOfTheStandard() {
    let short = HMAC.sha256("Hi There".utf8, key: [UInt8](repeating: 0x0b, count: 20))
    #expect(Digest.hex(short) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    let text = "Test Using Larger Than Block-Size Key - Hash Key First"
    let long = HMAC.sha256(text.utf8, key: [UInt8](repeating: 0xaa, count: 131))
    #expect(Digest.hex(long) == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
  }

  /// The reader refuses ciphertext that was cut, changed or put together from parts of two files.
  @Test func aChangeIsNoticed() throws {
    let source = try SealedSource(DataSource(text), to: [sealKey.recipient])
    let sealed = try source.readAll()
    let start = sealed.count - text.count - 4 * 16
    let chunk = 65_552
    func changed(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
      var copy = sealed
      body(&copy)
      return copy
    }
    let wrong = [
      changed { $0[start + 70_000] ^= 1 }, changed { $0[$0.count - 1] ^= 1 }, changed { $0.removeLast() },
      changed { $0.removeLast($0.count - start - chunk) }, changed { $0.append(0) },
      changed { $0.removeSubrange(start..<start + chunk) },
      changed { bytes in for place in 0..<chunk { bytes.swapAt(start + place, start + chunk + place) } },
      changed { $0[start - 1] ^= 1 },
    ]
    for (number, wrong) in wrong.enumerated() {
      #expect(failure { () throws(BlobError) in try open(wrong) }?.code == .io, "change \(number)")
    }
    let header = changed { $0[40] ^= 1 }
    #expect(failure { () throws(BlobError) in try open(header) } != nil)
  }

  /// Two plaintexts under one key would reveal their difference.
  @Test func changedBytesAreNotSealedUnderTheOldKey() throws {
    let file = try TemporaryFile(text, age: .seconds(60))
    let source = try SealedSource(file.source, to: [sealKey.recipient])
    let reader = try source.open(at: 0, Cancellation())
    _ = try readNext(reader, 70_000)
    try file.overwrite([0xFF], at: 150_000)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 200_000, alignment: 16)
    defer { buffer.deallocate() }
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    var error: BlobError?
    for _ in 0..<3 where error == nil {
      error = failure { () throws(BlobError) in try reader.read(into: buffer) }
    }
    #expect(error?.code == .changed)
    #expect(failure { () throws(BlobError) in try source.open(at: 0, Cancellation()) }?.code == .changed)
    #expect(failure { () throws(BlobError) in try source.open(at: 140_000, Cancellation()) }?.code == .changed)
  }

  @Test func aSourceWithoutVersionsIsReadOnceOrRefused() throws {
    let random = try SealedSource(Versionless(text), to: [sealKey.recipient])
    #expect(failure { () throws(BlobError) in try random.open(at: 0, Cancellation()) }?.code == .unsupported)
    let once = try SealedSource(pipe(PatternSource(length: 200_000, seed: 9)), to: [sealKey.recipient])
    var sealed: [UInt8] = []
    while case let next = try readNext(try once.open(at: Int64(sealed.count), Cancellation()), 30_011), !next.isEmpty {
      sealed += next
    }
    #expect(try open(sealed) == text)
    #expect(failure { () throws(BlobError) in try once.open(at: 0, Cancellation()) }?.code == .outOfRange)
  }

  @Test func noSecretIsShown() throws {
    let seal = try FileSeal(to: [sealKey.recipient])
    let passphrase = try SealRecipient.passphrase("correct horse", logarithm: 10)
    let source = SealedSource(DataSource([]), seal)
    var dumped = ""
    dump(source, to: &dumped)
    dump(sealKey.identity, to: &dumped)
    dump(passphrase, to: &dumped)
    let shown = dumped + "\(source) \(seal) \(String(reflecting: seal)) \(sealKey.identity) \(passphrase)"
    let key = seal.fileKey
    for secret in ["\(key[0]), \(key[1]), \(key[2])", "- \(key[0])\n", "horse", "GFPYY", "73, 73", "66, 66"] {
      #expect(!shown.contains(secret), "\(secret)")
    }
  }

  @Test func aBoxedSealIsOpenedByItsKeyAlone() throws {
    let seal = try FileSeal(to: [sealKey.recipient])
    let key = FileSeal.newBoxKey()
    let box = seal.boxed(under: key)
    #expect(FileSeal(unboxing: box, under: key)?.prefix == seal.prefix)
    #expect(FileSeal(unboxing: box, under: FileSeal.newBoxKey()) == nil)
    for place in [0, 12, box.count - 1] {
      var wrong = box
      wrong[place] ^= 1
      #expect(FileSeal(unboxing: wrong, under: key) == nil)
    }
    #expect(FileSeal(unboxing: [], under: key) == nil)
    #expect(box.firstRange(of: seal.fileKey) == nil)
  }

  @Test(
    arguments: [
      "", "age1", "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwk", "ssh-rsa AAAAB3NzaC1yc2E= me",
      "ssh-ed25519 AAAA me", "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX",
      "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj more",
      "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t",
    ])
  func anInvalidPublicKeyIsRefusedAndNotRepeatedInTheError(_ text: String) throws {
    let error = failure { () throws(BlobError) in try SealRecipient(text) }
    #expect(error?.code == .unsupported)
    #expect(error?.message.contains("GFPYYSJ") == false)
  }

  @Test func keysAreReadAndShown() throws {
    let upper = try SealRecipient("AGE1ZVKYG2LQZRAA2LNJVQEJ32NKUU0UES2S82HZRYE869XEEXVN73EQUNUJWJ")
    #expect(upper == sealKey.recipient)
    #expect("\(upper)" == "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj")
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN"
    #expect("\(try SealRecipient(line + " alice@host"))" == line)
  }
}

private struct Versionless: BlobSource {
  let source: DataSource
  init(_ bytes: [UInt8]) { source = DataSource(bytes) }
  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: try source.info(cancel).length) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try source.open(at: offset, cancel)
  }
}
