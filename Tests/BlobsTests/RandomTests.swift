import BlobCrypto
import BlobTesting
import Blobs
import Testing

/// Nested wrappers in any order, with connection losses and short reads in between.
struct RandomTests {
  @Test func anyStackOfWrappersGivesTheSameBytes() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("anyStackOfWrappersGivesTheSameBytes: seed \(seed)")
    var random = Numbers(seed)
    for round in 0..<200 {
      let length = Int64.random(in: 0...20_000, using: &random)
      let pattern = PatternSource(
        length: length, seed: seed, knowsLength: .random(using: &random),
        preferredRead: .random(in: 0...1, using: &random))
      let (source, names) = try stack(on: pattern, &random)
      let start = Int64.random(in: 0...length, using: &random)
      let end = Int64.random(in: start...length, using: &random)
      let slice = BlobSlice(source, start: start, length: .random(using: &random) ? end - start : nil)
      let expected = pattern.bytes(at: start, count: Int((slice.length ?? length - start)))
      let found = try slice.readAll(upTo: .random(in: 1...5000, using: &random))
      try #require(found == expected, "seed \(seed), round \(round): \(names) of \(length), from \(start)")
    }
  }

  private func stack(on pattern: PatternSource, _ random: inout Numbers) throws -> (any BlobSource, [String]) {
    var source: any BlobSource = pattern
    var names: [String] = []
    for _ in 0..<Int.random(in: 0...5, using: &random) {
      let at = Int64.random(in: 0...pattern.length, using: &random)
      let (name, next): (String, any BlobSource) =
        switch Int.random(in: 0...9, using: &random) {
        case 0:
          ("lost at \(at)", ReopeningSource(FaultySource(source, .invalidate(at: at, times: 2))))
        case 1: ("buffered", BufferedSource(source, block: .random(in: 1...5000, using: &random)))
        case 2: ("hashing", HashingSource(source, .md5))
        case 3: ("counting", CountingSource(source))
        case 4: ("in a row", ConcatenatedSource([DataSource([]), source]))
        case 5: ("throttled", ThrottledSource(source, RateLimiter(bytesPerSecond: 1 << 40)))
        case 6: ("progress", ProgressSource(source) { _ in })
        case 7: ("sliced", SlicedSource(ConcatenatedSource([DataSource([1, 2, 3]), source]), start: 3))
        case 8: ("there and back", try roundTrip(source))
        default: ("short reads", FaultySource(source, .shortReads(.random(in: 1...999, using: &random))))
        }
      source = next
      names.append(name)
    }
    return (source, names)
  }
}

/// SplitMix64: the same numbers for the same seed.
struct Numbers: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z &>> 31)
  }
}
