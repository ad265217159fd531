import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Sources that do not answer, and do not fail either.
@Suite(.timeLimit(.minutes(2))) struct BackgroundStallTests {
  /// Four photos in iCloud whose downloads get nowhere have all threads that read sources, and all room in the spool.
  @Test(arguments: BackgroundProtocol.allCases)
  func photosThatAreNotDeliveredDoNotHoldUpOthers(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol) { settings in
      settings.retry = RetryPolicy(first: .milliseconds(2), longest: .seconds(1), outage: .seconds(100))
    }
    let app = try await phone.launch()
    let deliveries = KeptDeliveries(interval: .milliseconds(2), mostSilence: 120)
    for number in 0..<6 {
      let photo = FakeDelivery(PatternSource(length: 100_000), isStalled: number < 4, stallsAt: number < 4 ? 0 : 40_000)
      try await app.add(DeliveredSource(photo, name: "photo \(number)", deliveries), as: BytePath("\(number).heic"))
    }
    let file = PatternSource(length: 7000, seed: 2)
    async let end = app.end(of: "a.jpg")
    try await app.add(file, as: "a.jpg")
    #expect(await end.isFinished)
    #expect(server.has("a.jpg", file))
    try await eventually { app.uploader.uploads.count { $0.saysNoAnswer } == 6 }
    for number in 0..<6 { try await app.uploader.cancel(BytePath("\(number).heic")) }
    #expect(phone.names.isEmpty)
  }

  /// A resumption reads nothing, and the app may be suspended soon.
  @Test func slowSourcesDoNotHoldUpAResumption() async throws {
    let server = try ServedFolder()
    let daemon = Daemon(fault: { number, _ in number == 0 ? .breaksResumably(60_000) : nil })
    daemon.isHeld = true
    let phone = try Phone(server.endpoint, IETFResumable(), spoolBytes: 1 << 20, daemon: daemon)
    let app = try await phone.launch()
    let film = PatternSource(length: 70_000, seed: 2)
    async let end = app.end(of: "film.mov")
    try await app.add(film, as: "film.mov")
    try await eventually { daemon.started.count == 1 }
    let slow = (0..<4).map { FaultySource(PatternSource(length: 9000, seed: UInt64($0)), .stall(at: 0)) }
    for (number, source) in slow.enumerated() { try await app.add(source, as: BytePath("\(number).heic")) }
    try await eventually { slow.allSatisfy { $0.reads > 0 } }
    daemon.isHeld = false
    #expect(await end.isFinished)
    #expect(server.has("film.mov", film))
    for number in 0..<4 { try await app.uploader.cancel(BytePath("\(number).heic")) }
  }
}

extension BackgroundUpload {
  /// The upload waits because its source has not answered.
  fileprivate var saysNoAnswer: Bool {
    guard case .waiting(let error, _) = state else { return false }
    return error.side == .source && (error.cause as? BlobError)?.code == .invalidated
  }
}
