import BlobHTTP
import BlobTesting
import Synchronization
import Testing

@testable import BlobUpload

/// Always returns the largest value.
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

  @Test func aPolicyGivesUpAfterItsNumberOfRetries() {
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

  /// The number and the sum of the delays until the policy gives up.
  private func waits(_ policy: RetryPolicy, isOutage: Bool) -> (count: Int, sum: Duration) {
    var (failures, count, sum) = (FailureCount(), 0, Duration.zero)
    var random = SystemRandomNumberGenerator()
    while let wait = failures.delay(policy, isOutage: isOutage, asked: nil, using: &random) {
      (count, sum) = (count + 1, sum + wait)
      if count > 100_000 { break }
    }
    return (count, sum)
  }

  @Test func aDestinationThatIsAwayIsWaitedForByTime() {
    let away = waits(RetryPolicy(), isOutage: true)
    #expect(away.sum >= .seconds(600) && away.sum <= .seconds(630), "\(away)")
    #expect(waits(RetryPolicy(), isOutage: false).count == 8)
    #expect(waits(RetryPolicy(retries: 3), isOutage: true).count == 3, "who gives a number means all failures")
    #expect(waits(RetryPolicy(first: .zero), isOutage: true).count <= 6000, "waits of no length come to an end too")
  }

  /// A restarting server refuses a hundred connections, and then responds that it is not ready.
  @Test func refusalsAndOutagesAreCountedSeparately() {
    var (failures, random) = (FailureCount(), Last())
    let policy = RetryPolicy(first: .milliseconds(1), longest: .milliseconds(200))
    for _ in 0..<100 { #expect(failures.delay(policy, isOutage: true, asked: nil, using: &random) != nil) }
    for _ in 0..<8 { #expect(failures.delay(policy, isOutage: false, asked: nil, using: &random) != nil) }
    #expect(failures.delay(policy, isOutage: false, asked: nil, using: &random) == nil)
  }

  /// The server responds 503, then refuses `refused` connections, and then works again.
  @Test(arguments: [(16, true), (1000, false)])
  func anUploadRidesOutAnOutage(_ refused: Int, _ isWhole: Bool) async {
    let clock = LeapingClock()
    let script = Script { number, _ throws(TransportError) in
      if number == 0 { return .status(503) }
      if number <= refused { throw TransportError(.connect, "connection refused") }
      return .status(201)
    }
    var uploader = uploader(PlainPut(), script, clock: clock)
    uploader.retry = RetryPolicy()
    let error = await uploader.failure()
    let away = clock.waits.reduce(.zero, +)
    #expect((error == nil) == isWhole, "\(String(describing: error))")
    #expect(away > .seconds(isWhole ? 37 : 600) && away < .seconds(700), "\(away)")
  }

  /// A proxy responds for a server that restarts. A server that has not accepted anything yet may never do so.
  @Test(arguments: [502, 503, 504], [false, true])
  func aServerThatIsNotReadyIsWaitedForByTime(_ status: Int, _ hasAccepted: Bool) async {
    let clock = LeapingClock()
    let script = Script { number, _ throws(TransportError) in
      hasAccepted && number == 0 || number > 20 ? .status(201) : .status(status)
    }
    var uploader = uploader(PlainPut(), script, clock: clock)
    uploader.retry = RetryPolicy()
    if hasAccepted { #expect(await uploader.failure(as: "first") == nil) }
    let error = await uploader.failure()
    #expect((error == nil) == hasAccepted, "\(String(describing: error))")
    #expect(clock.waits.count == (hasAccepted ? 20 : 8), "\(clock.waits)")
  }

  private static let unanswered = TransportError(.broken, "it closed the connection", isUnanswered: true)

  /// A tunnel accepts connections for a server that is away, and closes each before the first byte of a response.
  @Test(arguments: ["put", "tus"], [20, 1000])
  func aServerBehindATunnelIsWaitedForByTime(_ name: String, _ cut: Int) async {
    let clock = LeapingClock()
    let script = Script { number, request throws(TransportError) in
      if number > 0, number <= cut { throw Self.unanswered }
      if name == "put" { return .status(201) }
      return switch request.method {
      case "POST": .created
      case "HEAD": .at(0, of: 1000)
      default: .at(1000)
      }
    }
    var uploader = uploader(name == "put" ? PlainPut() : Tus(), script, clock: clock)
    uploader.retry = RetryPolicy()
    if name == "put" { #expect(await uploader.failure(as: "first") == nil) }
    let error = await uploader.failure()
    #expect((error == nil) == (cut == 20), "\(String(describing: error))")
    let away = clock.waits.reduce(.zero, +)
    #expect(away > .seconds(cut == 20 ? 100 : 600) && away < .seconds(700), "\(away)")
  }

  /// The server is there: it answers, and then breaks the connection while it is sent the file.
  @Test func aServerThatBreaksEveryBodyIsGivenUp() async {
    let clock = LeapingClock()
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "POST": .created
      case "HEAD": .at(0, of: 1000)
      default: throw Self.unanswered
      }
    }
    var uploader = uploader(Tus(), script, clock: clock)
    uploader.retry = RetryPolicy()
    #expect(await uploader.failure()?.recovery == .giveUp)
    #expect(clock.waits.count <= 9, "\(clock.waits)")
  }

  /// A program at the server fails for one name, and the connection is closed. The file is given up, and not waited for as a
  /// server that is away.
  @Test(arguments: [false, true]) func aServerThatAnswersAllButOneNameIsThere(_ isThere: Bool) async {
    let clock = LeapingClock()
    let script = Script { number, request throws(TransportError) in
      if number == 0 || isThere && request.method == "OPTIONS" { return .status(201) }
      throw Self.unanswered
    }
    var uploader = uploader(PlainPut(), script, clock: clock)
    uploader.retry = RetryPolicy()
    #expect(await uploader.failure(as: "first") == nil)
    #expect(await uploader.failure()?.recovery == .giveUp)
    #expect(clock.waits.reduce(.zero, +) < .seconds(120) || !isThere, "\(clock.waits)")
    #expect(isThere || clock.waits.reduce(.zero, +) > .seconds(600), "\(clock.waits)")
  }

  /// A server that has never accepted anything, or is sent many bytes each time, is no server that is away.
  @Test(arguments: [Int64(1000), 64 << 20]) func aServerThatNeverAnswersIsGivenUp(_ length: Int64) async {
    let clock = LeapingClock()
    let script = Script { number, _ throws(TransportError) in
      if number == 0, length > 1000 { return .status(201) }
      throw Self.unanswered
    }
    var uploader = uploader(PlainPut(), script, clock: clock)
    uploader.retry = RetryPolicy()
    if length > 1000 { #expect(await uploader.failure(as: "first") == nil) }
    #expect(await uploader.failure(of: length)?.recovery == .giveUp)
    #expect(clock.waits.count == 8, "\(clock.waits)")
  }

  /// For example, the user has mistyped the host.
  @Test func aDestinationThatWasNeverReachedIsGivenUpSoon() async {
    let clock = LeapingClock()
    let script = Script { _, _ throws(TransportError) in throw TransportError(.resolve, "no such host") }
    var uploader = uploader(PlainPut(), script, clock: clock)
    uploader.retry = RetryPolicy()
    #expect(await uploader.failure()?.side == .destination)
    #expect(clock.waits.count <= 1 && script.requests.count <= 2)
  }

  /// Another file has reached the server that was away: the rest of the delay is left out, once.
  @Test func aDelayEndsOnceTheServerAnswersAgain() async throws {
    let clock = AnsweringClock()
    var uploader = uploader(PlainPut(), Script { _, _ in .status(201) })
    uploader.clock = clock
    uploader.retry = RetryPolicy(first: .seconds(30), longest: .seconds(30))
    let contact = uploader.destination.acquaintance
    contact.contact.noteReached()
    let refused = UploadError(TransportError(.connect, "PUT http://media.example/in/a: connection refused"))
    var failures = FailureCount()
    for _ in 1...2 { try await uploader.wait(after: refused, &failures, "a") }
    #expect(clock.waits.first.map { $0 >= .seconds(15) } == true, "\(clock.waits)")
    // Nothing has answered, so that the second delay is as long as the first one.
    #expect(clock.waits.dropFirst().reduce(.zero, +) >= .seconds(15), "\(clock.waits)")
    let before = clock.waits.count
    clock.answer = { contact.contact.note(.status(204)) }
    try await uploader.wait(after: refused, &failures, "a")
    #expect(clock.waits.dropFirst(before) == [.seconds(1)], "\(clock.waits)")
    // The server answers other requests and refuses these: they wait as long as before.
    try await uploader.wait(after: refused, &failures, "a")
    #expect(try #require(clock.waits.last) >= .seconds(15), "\(clock.waits)")
  }
}

/// A clock that never waits. During each wait, something happens.
private final class AnsweringClock: Clock {
  typealias Instant = LeapingClock.Instant
  private let base = LeapingClock()
  private let happening = Mutex<@Sendable () -> Void>({})

  var answer: @Sendable () -> Void {
    get { happening.withLock { $0 } }
    set { happening.withLock { $0 = newValue } }
  }
  var waits: [Duration] { base.waits }
  var now: Instant { base.now }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {
    try await base.sleep(until: deadline, tolerance: tolerance)
    answer()
  }
}
