import BlobTesting
import Blobs
import Testing

/// Tests the code on which the other tests rely.
struct BlobTestingTests {
  @Test func patternIsTheSameHoweverItIsCut() {
    let pattern = PatternSource(length: 100_000, seed: 5)
    let whole = pattern.bytes(count: 100_000)
    for size in [1, 7, 4095, 4096, 4097] {
      for offset in stride(from: 0, to: 30_000, by: max(size, 13)) {
        let piece = pattern.bytes(at: Int64(offset), count: size)
        guard piece == Array(whole[offset..<offset + size]) else {
          Issue.record("\(size) bytes at \(offset) differ")
          return
        }
      }
    }
    #expect(pattern.byte(at: 4100) == whole[4100])
  }

  @Test func misplacedBytesShow() {
    let pattern = PatternSource(length: .max)
    let far: [Int64] = [1, 8, 4095, 4096, 8192, 65_536, 1 << 20, 1 << 28, 1 << 32, 1 << 40]
    for distance in far {
      for offset in [0, 5, 4096, 1 << 33] as [Int64] {
        let bytes = pattern.bytes(at: offset, count: 8192)
        #expect(bytes.withUnsafeBytes { pattern.verify($0, at: offset) } == nil)
        #expect(bytes.withUnsafeBytes { pattern.verify($0, at: offset + distance) } != nil)
      }
    }
    #expect(
      PatternSource(length: 1, seed: 1).bytes(count: 4096) != PatternSource(length: 1, seed: 2).bytes(count: 4096))
  }

  @Test func firstWrongByteIsNamed() {
    let pattern = PatternSource(length: .max)
    for place in [0, 7, 8, 4095, 4096, 9999] {
      var bytes = pattern.bytes(at: 1000, count: 10_000)
      bytes[place] ^= 1
      #expect(bytes.withUnsafeBytes { pattern.verify($0, at: 1000) } == 1000 + Int64(place))
    }
  }

  @Test func patternLooksLikeNoise() {
    var counts = [Int](repeating: 0, count: 256)
    for byte in PatternSource(length: 1).bytes(count: 256_000) { counts[Int(byte)] += 1 }
    #expect(counts.allSatisfy { 700...1300 ~= $0 })
  }

  /// Each kind of broken source fails some check.
  @Test(
    arguments: [
      ("one wrong byte", wrong { bytes in bytes[600] ^= 1 }),
      ("too short", wrong { $0.removeLast() }),
      ("too long", wrong { $0.append(0) }),
      ("ends early", source { FaultySource($0, .truncate(at: 999)) }),
      ("fails", source { FaultySource($0, .fail(at: 5, BlobError(.io, ""))) }),
      ("fails once, when it is read again", source { FaultySource($0, .failOpening(BlobError(.io, ""), from: 2)) }),
      ("changes", source { FaultySource($0, .changedAtEnd) }),
      ("hides its length", source { _ in PatternSource(length: 1000, knowsLength: false) }),
      ("cannot be opened in the middle", source { _ in PatternSource(length: 1000, access: .sequential) }),
    ] as [(String, SourceFixture)])
  func brokenSourceFailsAtLeastOneCheck(_ name: String, _ fixture: SourceFixture) async {
    var failures = 0
    for check in SourceCheck.all {
      do { try await check.run(fixture) } catch { failures += 1 }
    }
    #expect(failures > 0)
  }

  private static func source(_ make: @escaping @Sendable (PatternSource) -> any BlobSource) -> SourceFixture {
    let pattern = PatternSource(length: 1000)
    return SourceFixture("broken", like: pattern) { make(pattern) }
  }

  private static func wrong(_ change: (inout [UInt8]) -> Void) -> SourceFixture {
    var bytes = PatternSource(length: 1000).bytes(count: 1000)
    change(&bytes)
    let source = DataSource(bytes)
    return SourceFixture("broken", like: PatternSource(length: 1000)) { source }
  }
}
