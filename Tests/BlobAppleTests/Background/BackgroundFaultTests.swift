import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

@Suite(.timeLimit(.minutes(2))) struct BackgroundFaultTests {
  private let source = PatternSource(length: 70_000, seed: 5)

  /// Uploads the source, with a fault of the first task that appends bytes.
  private func upload(
    _ uploadProtocol: BackgroundProtocol, _ fault: Daemon.Fault, _ change: (inout BackgroundSettings) -> Void = { _ in }
  ) async throws -> (end: BackgroundUpload.State?, isStored: Bool, phone: Phone) {
    let server = try ServedFolder()
    let isFirst = Atomic(true)
    let daemon = Daemon(fault: { _, task in
      guard task.request.headers["Upload-Offset"] != nil else { return nil }
      return isFirst.exchange(false, ordering: .relaxed) ? fault : nil
    })
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon, change)
    let app = try await phone.launch()
    try await app.add(source, as: "film.mov")
    let end = await app.end(of: "film.mov")
    #expect(phone.names.isEmpty && phone.largestSpool <= phone.settings.spoolBytes)
    return (end, server.has("film.mov", source), phone)
  }

  /// 404 and 410: the upload is gone and begins anew. 409: the server is asked for its offset. 500, 503: the request is
  /// repeated.
  @Test(arguments: BackgroundProtocol.allCases, [404, 409, 410, 500, 503])
  func aRefusalThatCanBeOvercomeIsOvercome(_ uploadProtocol: BackgroundProtocol, status: Int) async throws {
    let (end, isStored, _) = try await upload(uploadProtocol, .answers(status))
    #expect(end.isFinished, "\(String(describing: end))")
    #expect(isStored)
  }

  @Test(arguments: BackgroundProtocol.allCases) func aBrokenPieceGoesOnAtItsByte(_ uploadProtocol: BackgroundProtocol)
    async throws
  {
    let (end, isStored, phone) = try await upload(uploadProtocol, .breaksAfter(5000))
    #expect(end.isFinished, "\(String(describing: end))")
    #expect(isStored)
    #expect(phone.daemon.bytes > 70_000)
  }

  /// A library of 100,000 photos may be added in a loop.
  @Test func addingWaitsForTheEndOfOthers() async throws {
    let (server, phone, app) = try await Phone.holding(BackgroundProtocol.tus.uploadProtocol) { $0.mostUploads = 3 }
    let daemon = phone.daemon
    let added = Atomic(0)
    let adding = Task { [source] in
      for number in 0..<8 {
        try await app.add(source, as: BytePath("\(number).mov"))
        // What is being uploaded already takes no second seat.
        try await app.add(source, as: BytePath("\(number).mov"))
        added.add(1, ordering: .relaxed)
      }
    }
    while added.load(ordering: .relaxed) < 3 { await Task.yield() }
    try await Task.sleep(for: .milliseconds(200))
    #expect(added.load(ordering: .relaxed) == 3 && app.uploader.uploads.count == 3)
    // The journal has the next one already.
    #expect(try await app.journal.unfinished().count == 4)
    daemon.isHeld = false
    try await adding.value
    try await eventually { (0..<8).allSatisfy { server.has(BytePath("\($0).mov"), self.source) } }
  }

  @Test(arguments: BackgroundProtocol.allCases) func aFinalRefusalIsReportedWithItsStatus(
    _ uploadProtocol: BackgroundProtocol
  )
    async throws
  {
    let (end, isStored, _) = try await upload(uploadProtocol, .answers(422))
    guard case .failed(let error)? = end else {
      Issue.record("\(String(describing: end))")
      return
    }
    #expect(error.status == 422 && error.message.contains("422"))
    #expect(!isStored)
  }

  /// The system may suspend the app, so it waits instead.
  @Test func aLongPauseIsLeftToTheSystem() async throws {
    let (end, isStored, phone) = try await upload(.tus, .answers(503)) { settings in
      settings.longestPause = .zero
      settings.retry.first = .milliseconds(200)
      settings.retry.longest = .milliseconds(200)
    }
    #expect(end.isFinished && isStored)
    let late = phone.daemon.started.filter { $0.task.delay > .zero }
    #expect(late.map(\.task.request.method) == ["HEAD"])
    #expect(late.allSatisfy { $0.task.body == nil && $0.task.delay >= .milliseconds(50) })
  }

  /// A file that goes with its creation: the system resumes it by itself.
  @Test func theSystemResumesAWholeFile() async throws {
    let server = try ServedFolder()
    let daemon = Daemon(fault: { number, _ in number == 0 ? .breaksResumably(60_000) : nil })
    let phone = try Phone(server.endpoint, IETFResumable(), spoolBytes: 400_000, daemon: daemon)
    let app = try await phone.launch()
    try await app.add(source, as: "film.mov")
    let end = await app.end(of: "film.mov")
    #expect(end.isFinished, "\(String(describing: end))")
    #expect(server.has("film.mov", source))
    #expect(daemon.started.map(\.isResumed) == [false, true])
    #expect(phone.names.isEmpty)
  }

  @Test func withoutANetworkTheSystemWaits() async throws {
    let server = try ServedFolder()
    let direct = FaultyTransport(SocketTransport()) { _, _ in .before(.connect) }
    let phone = try Phone(server.endpoint, Tus(), direct: direct)
    let app = try await phone.launch()
    try await app.add(source, as: "film.mov")
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
    #expect(phone.daemon.started.first?.task.request.method == "POST")
  }

  @Test func aFullDiskEndsTheUploadAndLeavesNothing() async throws {
    let server = try ServedFolder()
    let isFull = Atomic(true)
    let phone = try Phone(server.endpoint, Tus()) { settings in
      settings.write = { [write = settings.write] descriptor, bytes in
        if !isFull.load(ordering: .relaxed) { return write(descriptor, bytes) }
        if bytes.count > 1000 { return write(descriptor, UnsafeRawBufferPointer(rebasing: bytes.prefix(1000))) }
        errno = ENOSPC
        return -1
      }
    }
    let app = try await phone.launch()
    try await app.add(source, as: "film.mov")
    let end = await app.end(of: "film.mov")
    guard case .failed(let error)? = end else {
      Issue.record("\(String(describing: end))")
      return
    }
    #expect((error.cause as? BlobError)?.errno == ENOSPC && error.message.contains("spool"))
    #expect(phone.names.isEmpty && phone.daemon.started.isEmpty)
    isFull.store(false, ordering: .relaxed)
    try await app.add(source, as: "film.mov")
    #expect(await app.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
  }

  /// The system sends nothing for a while, so that the spool gets full: the other uploads wait for room.
  @Test func manyUploadsNeverHaveMoreThanTheBound() async throws {
    let (server, phone, app) = try await Phone.holding(IETFResumable(), spoolBytes: 20_000)
    let daemon = phone.daemon
    let sources = (0..<8).map { PatternSource(length: 12_000, seed: UInt64($0)) }
    for (number, source) in sources.enumerated() { try await app.add(source, as: BytePath("\(number)")) }
    try await eventually { daemon.started.filter { $0.task.length == 5000 }.count == 4 }
    #expect(phone.spoolBytes == 20_000 && app.uploader.uploads.count == 8)
    daemon.isHeld = false
    try await eventually { app.uploader.uploads.isEmpty }
    for (number, source) in sources.enumerated() { #expect(server.has(BytePath("\(number)"), source)) }
    #expect(phone.largestSpool == 20_000)
    #expect(phone.names.isEmpty)
  }

  @Test func twoUploadsShareTheSpool() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 20_000)
    let app = try await phone.launch()
    let other = PatternSource(length: 50_000, seed: 6)
    let third = PatternSource(length: 0)
    async let first = app.end(of: "a/film.mov")
    async let second = app.end(of: "b.mov")
    try await app.add(source, as: "a/film.mov")
    try await app.add(other, as: "b.mov")
    try await app.add(third, as: "empty")
    let ends = await [first, second]
    #expect(ends.allSatisfy { $0.isFinished })
    try await eventually { app.uploads(named: "empty").isEmpty }
    #expect(server.has("a/film.mov", source))
    #expect(server.has("b.mov", other))
    #expect(server.contents(of: "empty") == [])
    #expect(phone.largestSpool <= 20_000)
    #expect(phone.names.isEmpty)
  }
}

extension BackgroundUpload.State? {
  var isFinished: Bool { if case .finished? = self { true } else { false } }
}
