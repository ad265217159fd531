import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Sources that do not answer, and do not fail either.
@Suite(.timeLimit(.minutes(2))) struct BackgroundStallTests {
  /// A source of which reading blocks at a byte and does not notice that it was cancelled.
  private func hanging(_ source: PatternSource, at byte: Int64, _ gate: ThreadGate) -> GatedSource {
    GatedSource(source: source, gate: gate, at: .reading, from: byte, endsWhenCancelled: false)
  }

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
    let (server, phone, app) = try await Phone.holding(
      IETFResumable(), spoolBytes: 1 << 20,
      daemon: Daemon(isHeld: true, fault: { number, _ in number == 0 ? .breaksResumably(60_000) : nil }))
    let daemon = phone.daemon
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

  /// The threads that read the sources of cancelled uploads still have their files.
  @Test func theSpoolKeepsItsBoundWhileCancelledUploadsHang() async throws {
    let (server, phone, app) = try await Phone.holding(Tus())
    let daemon = phone.daemon
    let gates = (0..<4).map { _ in ThreadGate() }
    for (number, gate) in gates.enumerated() {
      let source = hanging(PatternSource(length: 70_000, seed: UInt64(number)), at: 16_000, gate)
      try await app.add(source, as: BytePath("\(number).mov"))
    }
    try await eventually { gates.allSatisfy { $0.visitors == 1 } }
    try await app.uploader.cancelAll()
    let film = PatternSource(length: 70_000, seed: 9)
    let names = (4..<8).map { BytePath("\($0).mov") }
    for name in names { try await app.add(film, as: name) }
    for _ in 0..<100 {
      try await Task.sleep(for: .milliseconds(3))
      phone.look()
    }
    #expect(phone.largestSpool <= phone.settings.spoolBytes)
    #expect(daemon.started.isEmpty)
    for gate in gates { gate.open() }
    try await eventually { daemon.started.count == 4 }
    phone.look()
    daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty }
    for name in names { #expect(server.has(name, film)) }
    #expect(phone.names.isEmpty && phone.largestSpool <= phone.settings.spoolBytes)
  }

  /// Of eight uploads with room four are being written when all are cancelled; the others wait for a thread.
  @Test func theRoomOfCancelledUploadsComesBack() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    let app = try await phone.launch()
    for round in 0..<4 as Range<UInt64> {
      let gates = (0..<8).map { _ in ThreadGate() }
      for (number, gate) in gates.enumerated() {
        let source = hanging(PatternSource(length: 6000, seed: round * 8 + UInt64(number)), at: 5000, gate)
        try await app.add(source, as: BytePath("\(number).heic"))
      }
      try await eventually { gates.count { $0.visitors == 1 } >= 4 }
      try await app.uploader.cancelAll()
      for gate in gates { gate.open() }
    }
    let film = PatternSource(length: 70_000, seed: 99)
    async let end = app.end(of: "film.mov")
    try await app.add(film, as: "film.mov")
    #expect(await end.isFinished)
    #expect(server.has("film.mov", film))
    try await eventually { phone.names.isEmpty }
  }
}

extension BackgroundUpload {
  /// The upload waits because its source has not answered.
  fileprivate var saysNoAnswer: Bool {
    guard case .waiting(let error, _) = state else { return false }
    return error.side == .source && (error.cause as? BlobError)?.code == .invalidated
  }
}
