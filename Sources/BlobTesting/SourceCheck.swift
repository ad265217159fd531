import Blobs
import Platform

/// One requirement of `BlobSource`, checked for any source. A new source joins with one `SourceFixture`:
///
/// ```swift
/// @Test(arguments: SourceFixture.all, SourceCheck.all)
/// func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }
/// ```
public struct SourceCheck: Sendable, CustomStringConvertible {
  public let description: String
  private let body: @Sendable (SourceFixture) throws -> Void

  init(_ description: String, _ body: @escaping @Sendable (SourceFixture) throws -> Void) {
    self.description = description
    self.body = body
  }

  /// Throws a `CheckFailure` if the check fails or does not end within `limit`. Runs on a thread that may block.
  public func run(_ fixture: SourceFixture, within limit: Duration = .seconds(180)) async throws {
    do {
      try await deadline(limit, "the check") { [body] in
        try await Self.threads.run { () throws in try body(fixture) }
      }
    } catch {
      throw CheckFailure("\(fixture): \(self): \(error)")
    }
  }

  // A check may wait for another thread, and many checks run concurrently.
  private static let threads = BlockingPool("source-checks", threads: 32)
}

/// The context of a running check, with the functions that checks use.
struct Examination {
  let fixture: SourceFixture
  let source: any BlobSource
  let cancel = Cancellation()

  init(_ fixture: SourceFixture) throws {
    self.fixture = fixture
    source = try fixture.make()
  }

  var isRandom: Bool { fixture.access == .random }

  func open(at offset: Int64) throws -> any BlobReader { try source.open(at: offset, cancel) }

  /// Reads `reader` from its current offset `start` up to `end`, and compares the bytes. `upTo` is the buffer size.
  func compare(_ reader: any BlobReader, from start: Int64, to end: Int64, upTo size: Int = 64 << 10) throws {
    let guardBytes = 16
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size + guardBytes, alignment: 16)
    defer { memory.deallocate() }
    memory.initializeMemory(as: UInt8.self, repeating: 0xA5)
    var offset = start
    while offset < end {
      let wanted = Int(min(Int64(size), end - offset))
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: memory[..<wanted]))
      try require(count > 0, "the end came at byte \(offset), before \(end)")
      try require(count <= wanted, "a buffer of \(wanted) was given \(count) bytes")
      let found = UnsafeRawBufferPointer(rebasing: memory[..<count])
      try fixture.expected(offset, count).withUnsafeBytes { expected in
        if let wrong = firstDifference(found, expected) {
          throw CheckFailure(
            "byte \(offset + Int64(wrong)) is \(found[wrong]) instead of \(expected[wrong]), read in \(size)s from \(start)"
          )
        }
      }
      try require(memory[size...].allSatisfy { $0 == 0xA5 }, "a read of \(size) wrote past its buffer")
      offset += Int64(count)
    }
  }

  /// Requires that the next read, with a buffer of 10 bytes, returns the end.
  func expectEnd(_ reader: any BlobReader) throws {
    let count = try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 16) { try reader.read(into: $0) }
    try require(count == 0, "\(count) bytes came after the end")
  }
}

func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
  if !condition { throw CheckFailure(message()) }
}

/// Requires that `body` throws a `BlobError` with this code.
func requireThrows(_ code: BlobError.Code, _ what: String, _ body: () throws -> Void) throws {
  do {
    try body()
  } catch let error as BlobError {
    try require(error.code == code, "\(what): .\(error.code) instead of .\(code): \(error)")
    return
  }
  throw CheckFailure("\(what): nothing was thrown instead of .\(code)")
}

private func firstDifference(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int? {
  if memcmp(a.baseAddress!, b.baseAddress!, a.count) == 0 { return nil }
  return a.indices.first { a[$0] != b[$0] }
}
