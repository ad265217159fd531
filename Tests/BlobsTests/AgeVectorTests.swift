import BlobCrypto
import Blobs
import Foundation
import TestSupport
import Testing

/// The published test vectors of age, without those for ASCII armor and for kinds of keys that are not supported.
struct AgeVectorTests {
  struct Vector: Sendable, CustomTestStringConvertible {
    let name: String
    var fields: [String: [String]] = [:]
    var file: [UInt8] = []
    var testDescription: String { name }

    init(_ name: String) throws {
      self.name = name
      let bytes = Array(try Data(contentsOf: AgeVectorTests.folder.appendingPathComponent(name)))
      let end = try #require(bytes.firstRange(of: Array("\n\n".utf8)))
      file = Array(bytes[end.upperBound...])
      for line in String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\n") {
        let colon = try #require(line.firstRange(of: ": "))
        fields[String(line[..<colon.lowerBound]), default: []].append(String(line[colon.upperBound...]))
      }
    }
  }

  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("AgeVectors")
  static let vectors = try! FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { try Vector($0) }

  @Test func thereAreVectorsOfEachKind() {
    let expectations = Set(Self.vectors.flatMap { $0.fields["expect"] ?? [] })
    #expect(expectations == ["success", "no match", "HMAC failure", "header failure", "payload failure"])
  }

  @Test(arguments: vectors) func opensAsItShould(_ vector: Vector) throws {
    var identities = try (vector.fields["identity"] ?? []).map { try SealIdentity($0) }
    identities += (vector.fields["passphrase"] ?? []).map { .passphrase($0) }
    let expected = vector.fields["expect"]?.first
    // Known and unknown lengths find the last chunk in two ways.
    for knowsLength in [true, false] {
      let source = Bytes(bytes: vector.file, knowsLength: knowsLength)
      var plain: [UInt8] = []
      var error: BlobError?
      do throws(BlobError) {
        let reader = try UnsealedSource(source, with: identities).open(at: 0, Cancellation())
        while case let next = try readNext(reader, 4096), !next.isEmpty { plain += next }
      } catch let failure {
        error = failure
      }
      switch expected {
      case "success":
        #expect(error == nil)
        #expect(Digest.hex(of: plain, .sha256) == vector.fields["payload"]?.first)
      case "no match": #expect(error?.code == .permission, "\(error as Any)")
      case "HMAC failure", "header failure": #expect(error?.code == .unsupported, "\(error as Any)")
      default: #expect(error?.code == .io, "\(error as Any)")
      }
      if expected != "success", expected != "payload failure" { #expect(plain.isEmpty) }
    }
  }
}

private struct Bytes: BlobSource {
  let bytes: [UInt8]
  let knowsLength: Bool
  var access: BlobAccess { .random }

  func info(_ cancel: Cancellation) -> BlobInfo {
    BlobInfo(length: knowsLength ? Int64(bytes.count) : nil, validator: Validator(version: "a"))
  }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    BytesReader(try DataSource(bytes).open(at: offset, cancel), info(cancel))
  }
}

private final class BytesReader: BlobReader {
  let info: BlobInfo
  private let reader: any BlobReader
  init(_ reader: any BlobReader, _ info: BlobInfo) { (self.reader, self.info) = (reader, info) }
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
  func fileRegion() -> FileRegion? { nil }
  func finish() {}
}
