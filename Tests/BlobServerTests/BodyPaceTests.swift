import Testing

@testable import BlobServer

struct BodyPaceTests {
  private static let begin = ContinuousClock.now

  /// Lets pieces of `size` bytes come every `milliseconds`, for some seconds from `start` on. Returns the end.
  private func play(
    _ pace: inout BodyPace, _ size: Int, every milliseconds: Int, from start: Duration = .zero, seconds: Double = 2
  ) -> Duration {
    var time = start
    while time < start + .seconds(seconds) {
      pace.came(size, at: Self.begin + time)
      time += .milliseconds(milliseconds)
    }
    return time
  }

  @Test func packetsOfASlowLinkAreGathered() {
    var pace = BodyPace()
    #expect(pace.least == 1)
    var time = play(&pace, 15_000, every: 3)
    #expect(pace.least == BodyPace.many)
    // As fast as before, in larger pieces.
    time = play(&pace, 65_000, every: 13, from: time, seconds: 60)
    #expect(pace.least == BodyPace.many)
  }

  @Test func largePiecesAreReadAtOnce() {
    var pace = BodyPace()
    _ = play(&pace, 200_000, every: 1)
    #expect(pace.least == 1)
  }

  @Test func bodiesAreReadAtOnceIfWaitingIsSlower() {
    var pace = BodyPace()
    var time = play(&pace, 1000, every: 2, seconds: 0.31)
    #expect(pace.least == BodyPace.many)
    time = play(&pace, 1000, every: 40, from: time, seconds: 0.5)
    #expect(pace.least == 1)
    time = play(&pace, 1000, every: 2, from: time, seconds: 29)
    #expect(pace.least == 1)
    // The link may be another one by now.
    _ = play(&pace, 1000, every: 2, from: time, seconds: 2)
    #expect(pace.least == BodyPace.many)
  }

  @Test func theTimeBetweenBodiesDoesNotCount() {
    var pace = BodyPace()
    let time = play(&pace, 15_000, every: 3)
    pace.bodyBegins()
    _ = play(&pace, 65_000, every: 13, from: time + .seconds(60), seconds: 1)
    #expect(pace.least == BodyPace.many)
  }
}
