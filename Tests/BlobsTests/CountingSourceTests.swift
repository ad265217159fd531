import BlobCrypto
import BlobTesting
import Blobs
import Testing

struct CountingSourceTests {
  @Test func allReadersCountTogether() throws {
    let source = CountingSource(PatternSource(length: 1000))
    let readers = try (0..<4).map { try source.open(at: $0 * 250, Cancellation()) }
    for reader in readers { _ = try readNext(reader, 250) }
    #expect(source.count == 1000)
    _ = try source.readAll()
    #expect(source.count == 2000)
    #expect(source.occurrences == 0)
  }

  @Test(
    arguments: [
      ("one\ntwo\n\nthree", "\n", 3), ("aaaaa", "aa", 2), ("ababac abac", "abac", 2), ("aabaabaaab", "aabaaab", 1),
      ("abc", "abcd", 0), ("", "a", 0), ("--x\r\n--x--\r\n", "\r\n--x", 1), ("aaaab", "aaab", 1),
    ], [1, 2, 3, 4096])
  func occurrencesAreFoundHoweverReadsCutThem(_ example: (text: String, wanted: String, times: Int64), _ size: Int)
    throws
  {
    let source = CountingSource(DataSource(example.text), occurrencesOf: Array(example.wanted.utf8))
    _ = try source.readAll(upTo: size)
    #expect(source.occurrences == example.times)
    #expect(source.count == example.text.utf8.count)
  }

  @Test func occurrencesAreThoseOfAPlainSearch() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("occurrencesAreThoseOfAPlainSearch: seed \(seed)")
    var random = Numbers(seed)
    for _ in 0..<300 {
      let text = (0..<Int.random(in: 0..<200, using: &random)).map { _ in UInt8.random(in: 0...1, using: &random) }
      let wanted = (0..<Int.random(in: 1..<6, using: &random)).map { _ in UInt8.random(in: 0...1, using: &random) }
      var expected: Int64 = 0
      var place = 0
      while place + wanted.count <= text.count {
        let isThere = Array(text[place..<place + wanted.count]) == wanted
        if isThere { expected += 1 }
        place += isThere ? wanted.count : 1
      }
      let source = CountingSource(DataSource(text), occurrencesOf: wanted)
      _ = try source.readAll(upTo: Int.random(in: 1..<20, using: &random))
      #expect(source.occurrences == expected, "\(wanted) in \(text)")
    }
  }

  @Test func occurrenceThatTwoReadersShareIsNotSeen() throws {
    let source = CountingSource(DataSource("abab"), occurrencesOf: Array("ab".utf8))
    _ = try readNext(try source.open(at: 0, Cancellation()), 1)
    _ = try source.readAll(at: 1)
    #expect(source.occurrences == 1)
  }

  @Test func nothingPassesUnseen() throws {
    let file = try TemporaryFile([1, 2, 3])
    #expect(try file.source.open(at: 0, Cancellation()).fileRegion() != nil)
    let limiter = RateLimiter(bytesPerSecond: 1000)
    let key = try EncryptionKey([UInt8](repeating: 1, count: 32))
    let wrapped: [any BlobSource] = [
      CountingSource(file.source), HashingSource(file.source, .md5), ThrottledSource(file.source, limiter),
      ConcatenatedSource([CountingSource(file.source)]), FaultySource(file.source),
      ProgressSource(file.source) { _ in },
      EncryptingSource(file.source, key: key, name: "a"), DecryptingSource(file.source, key: key, version: "a"),
    ]
    for source in wrapped { #expect(try source.open(at: 0, Cancellation()).fileRegion() == nil) }
  }
}
