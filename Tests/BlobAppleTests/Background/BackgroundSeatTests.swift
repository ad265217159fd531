import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Testing

@testable import BlobApple

/// Calls of `add` that have not begun their upload yet: they look at their source, or wait for the end of other uploads.
@Suite(.timeLimit(.minutes(2))) struct BackgroundSeatTests {
  private let first = PatternSource(length: 7000, seed: 7)
  private let second = PatternSource(length: 7000, seed: 8)

  /// A user signs out while the photo library still looks for the photo.
  @Test(arguments: [true, false])
  func cancelEndsACallThatLooksAtItsSource(cancelsAll: Bool) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    let app = try await phone.launch()
    let slow = SlowSource(first)
    let adding = Task { try await app.add(slow, as: "a.heic") }
    try await eventually { slow.isAsked }
    if cancelsAll { try await app.uploader.cancelAll() } else { try await app.uploader.cancel("a.heic") }
    slow.answer()
    try await adding.value
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(phone.daemon.bytes == 0)
    #expect(!server.has("a.heic", first))
    #expect(try await app.journal.unfinished().isEmpty)
    try await app.add(first, as: "a.heic")
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", first))
  }

  /// A call of `add` that comes after one of `cancelAll`, while the journal is still being opened.
  @Test func cancelDoesNotEndACallThatComesAfterIt() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    // The opening waits for the system's tasks.
    let (isAsked, mayAnswer) = (Flag(false), Flag(false))
    let journal = try await Journal(at: phone.scratch.path.appending("journal.sqlite"))
    let uploader = try BackgroundUploader(
      "test", phone.destination, journal: journal, tasks: SlowlyConnectedTasks(phone.daemon, isAsked, mayAnswer),
      direct: SocketTransport(), settings: phone.settings
    ) { _ in nil }
    try await eventually { isAsked.value }
    let early = Task { [first] in try await uploader.add(first, as: "early.heic") }
    try await eventually { uploader.board.lastSeat == 1 }
    let hasBegun = Flag(false)
    let cancelling = Task {
      hasBegun.value = true
      try await uploader.cancelAll()
    }
    try await eventually { hasBegun.value }
    try await Task.sleep(for: .milliseconds(50))
    let late = Task { [first] in try await uploader.add(first, as: "late.heic") }
    try await eventually { uploader.board.lastSeat == 2 }
    mayAnswer.value = true
    try await early.value
    try await cancelling.value
    try await late.value
    try await eventually { uploader.uploads.isEmpty }
    #expect(server.has("late.heic", first))
    #expect(try await journal.unfinished().isEmpty)
  }

  @Test func aCallThatLooksLongDoesNotReplaceALaterOne() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus()) { $0.overwrite = true }
    let app = try await phone.launch()
    let slow = SlowSource(first)
    let adding = Task { try await app.add(slow, as: "a.heic") }
    try await eventually { slow.isAsked }
    try await app.add(second, as: "a.heic")
    try await eventually { app.uploader.uploads.isEmpty }
    slow.answer()
    try await adding.value
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", second))
  }

  /// A phone that has room for one upload, which its system holds, and a call that waits for its end.
  private func phoneWithWaitingCall() async throws -> (ServedFolder, Phone, App, Task<Void, any Error>) {
    let (server, phone, app) = try await Phone.holding(Tus(), spoolBytes: 400_000) {
      $0.overwrite = true
      $0.mostUploads = 1
    }
    try await app.add(PatternSource(length: 1000, seed: 1), as: "0.heic")
    let waiting = Task { [first] in try await app.uploader.add(first, as: "a.heic", metadata: ["kind": "photo"]) }
    try await eventually { app.waitingForRoom("a.heic") == 1 }
    return (server, phone, app, waiting)
  }

  /// The version that the journal has arrives, and not only at the next launch.
  @Test func aCallWhoseSuccessorStopsWaitingRuns() async throws {
    let (server, phone, app, waiting) = try await phoneWithWaitingCall()
    let last = Task { [second] in try await app.uploader.add(second, as: "a.heic", metadata: ["kind": "edit"]) }
    try await eventually { app.waitingForRoom("a.heic") == 2 }
    last.cancel()
    _ = await last.result
    phone.daemon.isHeld = false
    try await waiting.value
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", second))
    #expect(phone.daemon.started.count { $0.task.length == 7000 } == 1)
  }

  @Test func aCallWhoseSuccessorFailsRuns() async throws {
    let (server, phone, app, waiting) = try await phoneWithWaitingCall()
    let slow = SlowSource(second)
    let last = Task { try await app.add(slow, as: "a.heic") }
    try await eventually { slow.isAsked }
    phone.daemon.isHeld = false
    try await waiting.value
    slow.answer(BlobError(.notFound, "open photo a.heic: it was deleted"))
    await #expect(throws: UploadError.self) { try await last.value }
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", first))
  }
}

/// A source that takes long to describe itself, as a photo that the library looks for, or a file of a file provider.
private final class SlowSource: BlobSource {
  private struct State {
    var isAsked = false
    var answer: Result<Void, BlobError>?
  }
  private let source: PatternSource
  private let state = Monitor(State())

  init(_ source: PatternSource) { self.source = source }

  var isAsked: Bool { state.update(waking: .none) { $0.isAsked } }
  func answer(_ error: BlobError? = nil) {
    state.update { $0.answer = error.map { .failure($0) } ?? .success(()) }
  }

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    state.update { $0.isAsked = true }
    try state.wait { $0.answer }.get()
    return try source.info(cancel)
  }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try source.open(at: offset, cancel)
  }
}

/// The system's service, which takes long to say which tasks there are.
private struct SlowlyConnectedTasks: BackgroundTasks {
  let daemon: Daemon
  let isAsked: Flag
  let mayAnswer: Flag

  init(_ daemon: Daemon, _ isAsked: Flag, _ mayAnswer: Flag) {
    self.daemon = daemon
    self.isAsked = isAsked
    self.mayAnswer = mayAnswer
  }

  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] {
    isAsked.value = true
    while !mayAnswer.value { try? await Task.sleep(for: .milliseconds(1)) }
    return daemon.connect(receiver)
  }
  func start(_ task: BackgroundTask) { daemon.start(task) }
  func resume(_ data: [UInt8], _ task: BackgroundTask) { daemon.resume(data, task) }
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) { daemon.cancel(label, done) }
}
