import Testing

@testable import BlobUpload

/// Always the largest value it may give.
private struct Last: RandomNumberGenerator { mutating func next() -> UInt64 { .max } }

@Suite struct RetryPolicyTests {
  @Test func waitsDoubleUpToTheLongest() {
    var random = Last()
    let policy = RetryPolicy(retries: 100, first: .milliseconds(250), longest: .seconds(30))
    let waits = (1...9).map { policy.delay(after: $0, asked: nil, using: &random)! }
    #expect(waits[0] <= .milliseconds(250) && waits[0] > .milliseconds(125))
    for (a, b) in zip(waits, waits.dropFirst()) { #expect(b >= a && b <= a * 2.001) }
    #expect(policy.delay(after: 90, asked: nil, using: &random)! <= .seconds(30))
  }

  @Test func aServersWishIsKeptWithinReason() {
    var random = Last()
    let policy = RetryPolicy()
    #expect(policy.delay(after: 1, asked: .seconds(3), using: &random) == .seconds(3))
    #expect(policy.delay(after: 1, asked: .seconds(86_400), using: &random) == .seconds(30))
    #expect(policy.delay(after: 1, asked: .zero, using: &random) == .zero)
  }

  @Test func itGivesUpAfterSoManyFailures() {
    var random = Last()
    let policy = RetryPolicy(retries: 2)
    #expect(policy.delay(after: 2, asked: nil, using: &random) != nil)
    #expect(policy.delay(after: 3, asked: nil, using: &random) == nil)
    #expect(RetryPolicy(retries: 0).delay(after: 1, asked: .zero, using: &random) == nil)
  }

  @Test func waitsAreSpread() {
    var random = SystemRandomNumberGenerator()
    let policy = RetryPolicy()
    let waits = Set((0..<20).map { _ in policy.delay(after: 5, asked: nil, using: &random)! })
    #expect(waits.count > 10)
  }
}
