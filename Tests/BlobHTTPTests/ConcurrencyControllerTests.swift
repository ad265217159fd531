import Testing

@testable import BlobClient

@testable import BlobHTTP

/// The number of concurrent requests over simulated links.
@Suite struct LaneWidthTests {
  static let seeds: [UInt64] = [1, 2, 3]
  static let mbit = 1e6 / 8
  private static let small: Int64 = 50 << 10
  private static let large: Int64 = 2 << 20

  /// The best possible bytes a second, with requests of `size` bytes and at most 64 at once.
  private func best(_ link: SimulatedLink, _ size: Int64) -> Double {
    let of64 = 64 * Double(size) / (link.roundTrip + link.service + Double(size) / min(link.rate, link.rateOfOne))
    let served = Double(link.servesAtOnce) * Double(size) / (link.roundTrip + link.service)
    return min(link.rate, of64, served)
  }

  private func steady(_ link: SimulatedLink, _ seconds: Double, _ size: Int64, _ seed: UInt64) -> (Double, LinkRun) {
    let run = link.run(ConcurrencyController(most: 64), for: seconds, seed: seed) { _ in size }
    #expect(run.mostUnderWay <= 64, "seed \(seed)")
    return (run.goodput(seconds / 2, seconds) / best(link, size), run)
  }

  static let links = [
    SimulatedLink(rate: 20 * mbit, roundTrip: 0.1), SimulatedLink(rate: 200 * mbit, roundTrip: 0.05),
    SimulatedLink(rate: 1000 * mbit, roundTrip: 0.02), SimulatedLink(rate: 5000 * mbit, roundTrip: 0.001),
  ]

  @Test(arguments: 0..<4, seeds)
  func smallFilesFillTheLink(_ index: Int, _ seed: UInt64) {
    let link = Self.links[index]
    let (share, _) = steady(link, [240, 40, 10, 3][index], Self.small, seed)
    #expect(share >= 0.97, "seed \(seed): \(share)")
  }

  @Test(arguments: 0..<4, seeds)
  func largeFilesFillTheLinkWithFew(_ index: Int, _ seed: UInt64) {
    let link = Self.links[index]
    let seconds = [1200.0, 200, 60, 20][index]
    let (share, run) = steady(link, seconds, Self.large, seed)
    #expect(share >= 0.97, "seed \(seed): \(share)")
    #expect(run.widths(seconds * 0.9, seconds).upperBound <= 24, "seed \(seed)")
  }

  @Test(arguments: 0..<4, seeds)
  func mixedFilesFillTheLink(_ index: Int, _ seed: UInt64) {
    let link = Self.links[index]
    let seconds = [400.0, 100, 60, 20][index]
    let run = link.run(ConcurrencyController(most: 64), for: seconds, seed: seed) { number in
      // Four of five bodies are small; the others have up to 8 MiB.
      number % 5 > 0 ? Self.small : Int64(number >> 32) % (8 << 20) + 1
    }
    let share = run.goodput(seconds / 2, seconds) / link.rate
    #expect(share >= 0.97, "seed \(seed): \(share)")
  }

  /// Simulates a policer, or windows that are too small for the round trip.
  @Test(arguments: seeds)
  func slowConnectionsRaiseTheConcurrency(_ seed: UInt64) {
    let some = SimulatedLink(rate: 200 * Self.mbit, rateOfOne: 20 * Self.mbit, roundTrip: 0.05)
    let (share, _) = steady(some, 200, Self.large, seed)
    #expect(share >= 0.97, "seed \(seed): \(share)")
    let all = SimulatedLink(rate: 1000 * Self.mbit, rateOfOne: 5 * Self.mbit, roundTrip: 0.05)
    let (shareOfAll, run) = steady(all, 400, Self.large, seed)
    #expect(shareOfAll >= 0.97, "seed \(seed): \(shareOfAll)")
    #expect(run.widths(200, 400).upperBound == 64)
  }

  /// A body of 200 MiB takes minutes, so only its pieces give measurements.
  @Test(arguments: seeds)
  func piecesOfLongBodiesTeach(_ seed: UInt64) {
    let link = SimulatedLink(rate: 200 * Self.mbit, rateOfOne: 10 * Self.mbit, roundTrip: 0.05)
    let (share, run) = steady(link, 300, 200 << 20, seed)
    #expect(share >= 0.97, "seed \(seed): \(share)")
    #expect(run.widths(150, 300).lowerBound >= 16)
  }

  /// Requests beyond the server's capacity only wait, so a larger number is unnecessary.
  @Test(arguments: seeds)
  func aServerThatWorksOnFewAtOnceIsNotCrowded(_ seed: UInt64) {
    let link = SimulatedLink(rate: 1000 * Self.mbit, roundTrip: 0.02, service: 0.02, servesAtOnce: 8)
    let (share, run) = steady(link, 60, Self.small, seed)
    #expect(share >= 0.96, "seed \(seed): \(share)")
    #expect(run.widths(40, 60).upperBound <= 24, "seed \(seed)")
  }

  @Test(arguments: [2, 10, 40], seeds)
  func aServerThatRefusesIsObeyed(_ limit: Int, _ seed: UInt64) {
    let link = SimulatedLink(rate: 1000 * Self.mbit, roundTrip: 0.05, refusesFrom: limit)
    let run = link.run(ConcurrencyController(most: 64), for: 60, seed: seed) { _ in Self.small }
    let best = Double(limit) * Double(Self.small) / (link.roundTrip + Double(Self.small) / link.rate)
    let share = run.goodput(30, 60) / best
    #expect(share >= 0.9, "seed \(seed): \(share)")
    // Occasionally one request too many is tried.
    let late = run.refusals.filter { $0 > 30 }.count
    #expect(late * 100 <= run.ended && !run.refusals.isEmpty, "seed \(seed): \(late) of \(run.ended)")
    #expect(run.width.learned?.wasRefused == true)
  }

  @Test(arguments: seeds)
  func anotherLinkIsLearnedAnew(_ seed: UInt64) {
    let link = SimulatedLink(
      rate: 200 * Self.mbit, roundTrip: 0.05, changes: [(60, 20 * Self.mbit), (200, 200 * Self.mbit)])
    let run = link.run(ConcurrencyController(most: 64), for: 300, seed: seed) { _ in Self.small }
    for (from, to, rate) in [(30.0, 60.0, 200.0), (100, 200, 20), (240, 300, 200)] {
      let share = run.goodput(from, to) / (rate * Self.mbit)
      #expect(share >= 0.95, "seed \(seed), from \(from): \(share)")
    }
  }

  @Test func theConcurrencyRisesWithinAFewHundredthsOfASecond() {
    let far = SimulatedLink(rate: 200 * Self.mbit, roundTrip: 0.1)
    let run = far.run(ConcurrencyController(most: 64), for: 1, seed: 1) { _ in Self.small }
    #expect(run.widths(0.05, 0.06) == 64...64)
    // A few large bodies fill a link too, and fewer of them are unfinished when it breaks.
    let large = far.run(ConcurrencyController(most: 64), for: 0.2, seed: 1) { _ in 100 << 20 }
    #expect(large.mostUnderWay == 8)
    let near = SimulatedLink(rate: 10_000 * Self.mbit, roundTrip: 0.0002)
    #expect(
      near.run(ConcurrencyController(most: 64), for: 5, seed: 1) { _ in Self.small }.mostUnderWay
        == ConcurrencyController.first)
    // Here bodies take longer because they are large, and because of this machine's speed.
    let quick = SimulatedLink(rate: 32_000 * Self.mbit, roundTrip: 0.0002)
    #expect(
      quick.run(ConcurrencyController(most: 64), for: 5, seed: 1) { _ in Self.large }.mostUnderWay
        == ConcurrencyController.first)
  }

  @Test func theNextRunBeginsWithTheLearnedConcurrency() throws {
    let link = SimulatedLink(rate: 1000 * Self.mbit, rateOfOne: 5 * Self.mbit, roundTrip: 0.05)
    let first = link.run(ConcurrencyController(most: 64), for: 120, seed: 1) { _ in Self.large }
    let learned = try #require(first.width.learned)
    #expect(learned.width >= 48)
    let cold = link.run(ConcurrencyController(most: 64), for: 10, seed: 2) { _ in Self.large }
    let warm = link.run(ConcurrencyController(most: 64, learned: learned), for: 10, seed: 2) { _ in Self.large }
    #expect(warm.goodput(0, 10) > 2 * cold.goodput(0, 10))
    // After a refusal the controller does not start with more than the server accepted.
    let careful = SimulatedLink(rate: 1000 * Self.mbit, roundTrip: 0.1, refusesFrom: 6)
    let again = careful.run(
      ConcurrencyController(most: 64, learned: LearnedConcurrency(width: 6, wasRefused: true)), for: 1, seed: 1
    ) {
      _ in Self.small
    }
    #expect(again.mostUnderWay == 6 && again.refusals.isEmpty)
  }

  /// With a distant server all connections are opened 5 ms later.
  @Test func bodiesThatKeepAProcessorBusyBeginWithFewer() {
    var costly = ConcurrencyController(most: 64)
    costly.begins(isCostly: true)
    #expect(costly.width == ConcurrencyController.firstCostly)
    for _ in 0..<5 { costly.still(underWay: 1 << 20) }
    #expect(costly.width == 64)
    costly.begins(isCostly: true)
    #expect(costly.width == 64)
    var cheap = ConcurrencyController(most: 64)
    cheap.begins(isCostly: false)
    cheap.begins(isCostly: true)
    #expect(cheap.width == ConcurrencyController.first, "workers are busy already")
    for var known in [
      ConcurrencyController(most: 64, learned: LearnedConcurrency(width: 16)), ConcurrencyController(fixed: 16),
    ] {
      known.begins(isCostly: true)
      #expect(known.width == 16)
    }
  }

  /// The time of earlier requests is known, so the controller need not wait again.
  @Test func roundTripsMeasuredBeforeTheFirstBodyCount() {
    var width = ConcurrencyController(most: 64)
    for _ in 0..<2 { width.stillBefore() }
    #expect(width.width == ConcurrencyController.first && width.ahead == 16)
    width.begins(isCostly: false)
    width.catchUp(underWay: ConcurrencyController.mostUnheard)
    #expect(width.width == ConcurrencyController.first, "as much as may be is under way")
    for wanted in [8, 16, 16] {
      width.catchUp(underWay: ConcurrencyController.mostUnheard - 1)
      #expect(width.width == wanted)
    }
    for _ in 0..<9 { width.stillBefore() }
    #expect(width.ahead == 64)
    width.begins(isCostly: true)
    width.catchUp(underWay: ConcurrencyController.mostUnheard / 2)
    #expect(width.width == 16, "half of it, where each takes memory for TLS")
    var fixed = ConcurrencyController(fixed: 16)
    fixed.stillBefore()
    fixed.catchUp(underWay: 0)
    #expect(fixed.width == 16 && fixed.ahead == 0)
  }

  @Test func anExplicitNumberStays() {
    let link = SimulatedLink(rate: 20 * Self.mbit, roundTrip: 0.05, refusesFrom: 50)
    for number in [1, 100] {
      let run = link.run(ConcurrencyController(fixed: number), for: 20, seed: 1) { _ in Self.small }
      #expect(run.widths(0, 20) == number...number && run.mostUnderWay == number)
      #expect(run.width.learned == nil)
    }
  }

  @Test func fewerThanMayGoTeachNothing() {
    var width = ConcurrencyController(most: 64)
    for number in 1...10_000 {
      let now = Duration.milliseconds(number)
      width.arrived(1000, from: now - .milliseconds(1), to: now, active: 1, isWanted: false)
    }
    #expect(width.width == ConcurrencyController.first && width.learned == nil)
  }
}
