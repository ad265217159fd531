import BlobTesting
import TestSupport
import Blobs
import Testing

struct RateLimiterTests {
  private let clock = ManualClock()
  private func limiter(_ bytesPerSecond: Int64) -> RateLimiter {
    RateLimiter(bytesPerSecond: bytesPerSecond, clock: clock)
  }

  @Test func bytesTakeTheirTime() throws {
    let source = ThrottledSource(PatternSource(length: 10_000), limiter(1000))
    let start = clock.now
    #expect(try source.readAll(upTo: 64) == PatternSource(length: 10_000).bytes(count: 10_000))
    #expect(clock.now - start >= .milliseconds(9800) && clock.now - start <= .seconds(10))
  }

  @Test func sourcesShareOneLimit() throws {
    let limiter = limiter(1000)
    let start = clock.now
    for seed in 0..<5 as Range<UInt64> {
      _ = try ThrottledSource(PatternSource(length: 1000, seed: seed), limiter).readAll()
    }
    #expect(clock.now - start >= .milliseconds(4800) && clock.now - start <= .seconds(5))
  }

  @Test func noReadIsLargerThanATenthOfASecond() throws {
    #expect(try limiter(1000).take(upTo: 1 << 20, Cancellation()) == 100)
    #expect(try limiter(1000).take(upTo: 7, Cancellation()) == 7)
    #expect(try limiter(3).take(upTo: 1 << 20, Cancellation()) == 1)
    #expect(try limiter(.max).take(upTo: .max, Cancellation()) > 0)
  }

  @Test func aPauseBeginsAfterItsBytesAndHappensOnce() throws {
    let limiter = RateLimiter(bytesPerSecond: 1 << 40, clock: clock, pause: (100, .seconds(7)))
    let start = clock.now
    #expect(try limiter.take(upTo: 60, Cancellation()) == 60)
    #expect(try limiter.take(upTo: 60, Cancellation()) == 40)
    // The returned number of bytes may pass before the pause.
    limiter.giveBack(10)
    #expect(try limiter.take(upTo: 60, Cancellation()) == 10)
    #expect(clock.now - start < .seconds(1))
    #expect(try limiter.take(upTo: 60, Cancellation()) == 60)
    #expect(clock.now - start >= .seconds(7) && clock.now - start < .seconds(8))
    #expect(try limiter.take(upTo: 1 << 16, Cancellation()) == 1 << 16)
    #expect(clock.now - start < .seconds(8))
  }

  @Test func readersWithLargeBuffersGetNoLargerShare() throws {
    let limiter = limiter(8 << 20)
    let small = RateGrant(limiter)
    let large = RateGrant(limiter)
    var taken = (small: 0, large: 0)
    let end = clock.now + .seconds(2)
    while clock.now < end {
      if small.timeLeft(upTo: 64 << 10) == .zero { taken.small += try small.take(upTo: 64 << 10, Cancellation()) }
      if large.timeLeft(upTo: 4 << 20) == .zero { taken.large += try large.take(upTo: 4 << 20, Cancellation()) }
      clock.advance(.milliseconds(1))
    }
    #expect(taken.large > 4 << 20 && taken.large < taken.small + taken.small / 10, "\(taken)")
  }

  @Test func pauseIsNotSavedUp() throws {
    let limiter = limiter(1000)
    _ = try limiter.take(upTo: 100, Cancellation())
    clock.advance(.seconds(3600))
    let start = clock.now
    var taken = 0
    while clock.now == start { taken += try limiter.take(upTo: 10, Cancellation()) }
    #expect(taken <= 210)
  }

  @Test func unusedBytesAreReturnedToTheRateLimiter() throws {
    let short = FaultySource(PatternSource(length: 2000), .shortReads(10))
    let start = clock.now
    _ = try ThrottledSource(short, limiter(1000)).readAll()
    #expect(clock.now - start <= .seconds(2))
    let failing = FaultySource(PatternSource(length: 10), .fail(at: 0, BlobError(.io, "")))
    let slow = limiter(10)
    let before = clock.now
    for _ in 0..<100 {
      #expect(failure { () throws(BlobError) in try ThrottledSource(failing, slow).readAll() } != nil)
    }
    #expect(clock.now - before <= .milliseconds(200))
  }

  @Test func smallReadsDoNotSlipThrough() throws {
    // At 3 GB/s a byte takes a third of a nanosecond.
    let limiter = limiter(3_000_000_000)
    let start = clock.now
    for _ in 0..<100_000 { _ = try limiter.take(upTo: 1, Cancellation()) }
    clock.advance(.zero)
    var left = 3_010_000_000
    while left > 0 { left -= try limiter.take(upTo: left, Cancellation()) }
    #expect(clock.now - start >= .milliseconds(900))
  }

  @Test func waitEndsWhenItIsCancelled() throws {
    let limiter = RateLimiter(bytesPerSecond: 1)
    let source = ThrottledSource(PatternSource(length: 100), limiter)
    let cancel = Cancellation()
    let reader = Background { failure { () throws(BlobError) in try readAll(try source.open(at: 0, cancel)) }?.code }
    #expect(reader.value(within: .milliseconds(30)) == nil)
    cancel.cancel()
    #expect(reader.value() == .cancelled)
  }
}
