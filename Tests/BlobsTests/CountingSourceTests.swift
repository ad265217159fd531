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
  }

  @Test func nothingPassesUnseen() throws {
    let file = try TemporaryFile([1, 2, 3])
    #expect(try file.source.open(at: 0, Cancellation()).fileRegion() != nil)
    let limiter = RateLimiter(bytesPerSecond: 1000)
    let wrapped: [any BlobSource] = [
      CountingSource(file.source), HashingSource(file.source, .md5), ThrottledSource(file.source, limiter),
      ConcatenatedSource([file.source]), FaultySource(file.source),
    ]
    for source in wrapped { #expect(try source.open(at: 0, Cancellation()).fileRegion() == nil) }
  }
}
