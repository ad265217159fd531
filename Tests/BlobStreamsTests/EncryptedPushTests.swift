import BlobCrypto
import BlobStreams
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Testing

/// A stream that is encrypted while its producer writes: it has no version, and is read once.
struct EncryptedPushTests {
  private let key: EncryptionKey
  private let text = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

  init() throws { key = try EncryptionKey(Array(0..<32)) }

  private func source(_ text: [UInt8]) -> EncryptingSource {
    EncryptingSource(StreamSource(InputStream(data: Data(text))), key: key, name: "film.mov")
  }

  private func read(_ reader: any BlobReader, _ most: Int = .max) throws(BlobError) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10_000, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while bytes.count < most {
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(most - bytes.count))
      let count = try reader.read(into: part)
      if count == 0 { break }
      bytes += part.prefix(count)
    }
    return bytes
  }

  @Test func aPushedSourceIsEncryptedAndCanBeDecrypted() throws {
    let source = source(text)
    let version = try #require(try source.info(Cancellation()).validator?.version)
    let reader = try source.open(at: 0, Cancellation())
    #expect(reader.info.validator?.version == version)
    let encrypted = try read(reader)
    #expect(encrypted != text && encrypted.count == text.count)
    let back = DecryptingSource(DataSource(encrypted), key: key, version: version)
    #expect(try read(back.open(at: 0, Cancellation())) == text)
    #expect(try read(back.open(at: 77, Cancellation())) == Array(text[77...]))
  }

  @Test func eachStreamHasAKeystreamOfItsOwn() throws {
    let zeros = [UInt8](repeating: 0, count: 64)
    let streams = try (0..<3).map { _ in try read(source(zeros).open(at: 0, Cancellation())) }
    let blocks = streams.flatMap { stream in stride(from: 0, to: 64, by: 16).map { Array(stream[$0..<$0 + 16]) } }
    #expect(Set(blocks).count == 12)
  }

  /// A source that can be opened again with other bytes would be encrypted twice with one keystream.
  @Test func noByteOfAKeystreamIsUsedTwice() throws {
    let rewinding = PatternSource(length: 50_000, access: .sequential, knowsLength: false)
    let source = EncryptingSource(Versionless(source: rewinding), key: key, name: "film.mov")
    var first: [UInt8] = []
    do {
      let reader = try source.open(at: 0, Cancellation())
      first = try read(reader, 20_000)
      let second = failure { () throws(BlobError) in try source.open(at: 0, Cancellation()) }
      #expect(second?.code == .unsupported, "another reader is at it")
    }
    for offset: Int64 in [0, 19_999, 20_001] {
      let error = failure { () throws(BlobError) in try source.open(at: offset, Cancellation()) }
      #expect(error?.code == .outOfRange, "byte \(offset)")
    }
    let rest = try read(source.open(at: 20_000, Cancellation()))
    let version = try #require(try source.info(Cancellation()).validator?.version)
    let back = DecryptingSource(DataSource(first + rest), key: key, version: version)
    #expect(try read(back.open(at: 0, Cancellation())) == rewinding.bytes(count: 50_000))
  }

  /// Uploads open a source with random access again, so it must have a version.
  @Test func aSourceThatCanBeReadTwiceStillNeedsAVersion() {
    let source = EncryptingSource(Versionless(source: PatternSource(length: 9)), key: key, name: "film.mov")
    #expect(failure { () throws(BlobError) in try source.open(at: 0, Cancellation()) }?.code == .unsupported)
  }
}

private struct Versionless: BlobSource {
  let source: PatternSource
  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: try source.info(cancel).length) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(reader: try source.open(at: offset, cancel))
  }

  private final class Reader: BlobReader {
    let reader: any BlobReader
    init(reader: any BlobReader) { self.reader = reader }
    var info: BlobInfo { BlobInfo(length: reader.info.length) }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
}
