import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// Tasks and pieces of an earlier launch that nobody waits for.
@Suite(.timeLimit(.minutes(2))) struct BackgroundLeftoversTests {
  private func names(_ prefix: String, _ count: Int) -> [BytePath] {
    (0..<count).map { BytePath("\(prefix)\($0).mov") }
  }

  /// A phone whose app was killed while the system had four pieces, which fill the spool.
  private func fullPhone(_ server: ServedFolder) async throws -> Phone {
    let daemon = Daemon(isHeld: true)
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon)
    let app = try await phone.launch()
    for (index, name) in names("old", 4).enumerated() {
      try await app.add(PatternSource(length: 70_000, seed: UInt64(index)), as: name)
    }
    try await eventually { daemon.started.count { $0.task.length > 0 } == 4 }
    app.life.kill()
    #expect(phone.names.count == 4)
    return phone
  }

  /// The user has deleted the files while the app was not running.
  @Test func uploadsOfDeletedFilesGiveTheirRoomBack() async throws {
    let server = try ServedFolder()
    let phone = try await fullPhone(server)
    let gone = FileSource("/nonexistent/film.mov")
    let app = try await phone.launch(Dictionary(uniqueKeysWithValues: names("old", 4).map { ($0, gone) }))
    try await eventually { app.uploader.uploads.isEmpty }
    phone.daemon.isHeld = false
    try await eventually { phone.daemon.isIdle }
    let source = PatternSource(length: 70_000, seed: 9)
    try await app.add(source, as: "new.mov")
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("new.mov", source))
    #expect(phone.names.isEmpty)
  }

  /// The app does not reopen the sources now; it may add them later.
  @Test func uploadsThatAreNotReopenedGiveTheirRoomBack() async throws {
    let server = try ServedFolder()
    let phone = try await fullPhone(server)
    let app = try await phone.launch()
    phone.daemon.isHeld = false
    let source = PatternSource(length: 70_000, seed: 9)
    try await app.add(source, as: "new.mov")
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("new.mov", source))
    for (index, name) in names("old", 4).enumerated() {
      let source = PatternSource(length: 70_000, seed: UInt64(index))
      try await app.add(source, as: name)
      try await eventually { app.uploader.uploads.isEmpty }
      #expect(server.has(name, source))
    }
    #expect(phone.names.isEmpty)
  }

  /// Uploads that have pieces wait for a place, and those that have a place wait for room.
  @Test func uploadsWithPiecesDoNotWaitForOthers() async throws {
    let direct = SwitchedTransport()
    let (server, phone, first) = try await Phone.holding(Tus(), direct: direct)
    let daemon = phone.daemon
    direct.answers.withLock { $0 = false }
    var sources: [BytePath: any BlobSource] = [:]
    for (index, name) in names("early", 32).enumerated() {
      let source = PatternSource(length: 70_000, seed: UInt64(100 + index))
      sources[name] = source
      try await first.add(source, as: name)
    }
    first.life.kill()
    direct.answers.withLock { $0 = true }
    let second = try await phone.launch()
    for (index, name) in names("old", 4).enumerated() {
      let source = PatternSource(length: 70_000, seed: UInt64(index))
      sources[name] = source
      try await second.add(source, as: name)
    }
    try await eventually { daemon.started.count { $0.task.length > 0 } == 4 }
    second.life.kill()
    let third = try await phone.launch(sources)
    try await eventually { third.uploader.uploads.count == 36 }
    try await Task.sleep(for: .milliseconds(300))
    daemon.isHeld = false
    try await eventually { third.uploader.uploads.isEmpty }
    for (name, source) in sources { #expect(server.has(name, source as! PatternSource)) }
  }

  /// The upload is not running, because its source was not reopened, and the system has a request of it.
  @Test(arguments: BackgroundProtocol.allCases)
  func cancelEndsRequestsOfUploadsThatWereNotReopened(_ uploadProtocol: BackgroundProtocol) async throws {
    let (server, phone, first) = try await Phone.holding(uploadProtocol.uploadProtocol)
    let source = PatternSource(length: 10_000, seed: 1)
    let daemon = phone.daemon
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.contains { $0.task.length > 0 } }
    first.life.kill()
    let second = try await phone.launch()
    try await second.uploader.cancel("film.mov")
    daemon.isHeld = false
    try await eventually { daemon.isIdle }
    #expect(server.contents(of: "film.mov") == nil)
    #expect(phone.names.isEmpty)
  }

  /// A task that has not begun to read its file would be sent with an empty body if the file were deleted first.
  @Test func aPieceIsDeletedAfterItsTaskWasCancelled() async throws {
    let scratch = try ScratchFolder()
    let wakeUp = WakeUp()
    let spool = PieceSpool(scratch.path.appending("spool"), bound: 1000, wakeUp)
    _ = try spool.sweep()
    let tasks = SlowTasks()
    let service = BackgroundService(
      session: "test", tasks: tasks, registry: TaskRegistry(spool, wakeUp), cancelled: CancelledTasks(), spool: spool,
      wakeUp: wakeUp,
      direct: SocketTransport())
    let url = try #require(HTTPURL("http://server/files/1"))
    let body = BlobSlice(PatternSource(length: 600), length: 600)
    let empty = TaskLabel(upload: "1", version: "1", HTTPRequest("PATCH", url), body: body)
    #expect(await spool.reserve(600))
    let label = try spool.write(body, as: empty, atMost: 600, Cancellation(), PieceHandover())
    #expect(spool.problem(reading: label) == nil)
    service.discard(label)
    #expect(scratch.names(in: "spool").count == 1)
    async let hasRoom = spool.reserve(600)
    tasks.finish()
    #expect(await hasRoom)
    #expect(scratch.names(in: "spool").isEmpty)
    #expect(spool.problem(reading: label)?.errno == 2)
  }

  /// Two sources that were added under one name.
  @Test func cancelEndsAllUploadsOfAName() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    phone.daemon.isHeld = true
    let app = try await phone.launch()
    for number in 1...2 {
      let source = PatternSource(length: 70_000, seed: UInt64(number))
      try await app.uploader.add(source, as: "film.mov", identity: BytePath("\(number)"))
    }
    try await eventually { app.uploader.uploads.count == 2 }
    try await app.uploader.cancel("film.mov")
    #expect(app.uploader.uploads.isEmpty)
    #expect(try await app.journal.unfinished().isEmpty)
    phone.daemon.isHeld = false
    try await eventually { phone.daemon.isIdle && phone.names.isEmpty }
    #expect(server.contents(of: "film.mov") == nil)
  }

  /// A task ends after the system has told which tasks there are, and after it has delivered the earlier events.
  @Test func anEventThatComesBeforeTheTasksAreKnownIsNotLost() async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, Tus())
    phone.daemon.isHeld = true
    let source = PatternSource(length: 70_000, seed: 1)
    let first = try await phone.launch()
    try await first.add(source, as: "film.mov")
    try await eventually { phone.daemon.started.contains { $0.task.length > 0 } }
    first.life.kill()
    phone.daemon.isHeld = false
    let mark = ProcessIdentity(pid: getpid(), boot: ProcessIdentity.current.boot, start: 77)
    let journal = try await Journal(at: phone.scratch.path.appending("journal.sqlite"), as: mark)
    let uploader = try BackgroundUploader(
      "test", phone.destination, journal: journal, tasks: LateTasks(phone.daemon), direct: SocketTransport(),
      settings: phone.settings
    ) { _ in source }
    try await eventually { server.has("film.mov", source) }
    try await eventually { uploader.uploads.isEmpty }
    #expect(phone.daemon.bytes == 70_000)
    #expect(phone.names.isEmpty)
  }
}

/// A network that may be switched off: requests wait meanwhile.
private final class SwitchedTransport: Transport {
  let answers = Mutex(true)
  private let transport = SocketTransport()
  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    while !answers.withLock({ $0 }), !Task.isCancelled { try? await Task.sleep(for: .milliseconds(5)) }
    return try await transport.send(request, body: body, on)
  }
}

/// Cancels tasks when `finish` is called.
private final class SlowTasks: BackgroundTasks {
  private let cancelled = Mutex<[@Sendable () -> Void]>([])

  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] { [] }
  func start(_ task: BackgroundTask) {}
  func resume(_ data: [UInt8], _ task: BackgroundTask) {}
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) { cancelled.withLock { $0.append(done) } }
  func finish() { for done in cancelled.withLock({ $0 }) { done() } }
}

/// Returns from `connect` when the tasks that it names have ended.
private struct LateTasks: BackgroundTasks {
  let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] {
    let labels = daemon.started.filter { $0.task.length > 0 }.map(\.task.label)
    receiver.deliveredAll()
    while !daemon.isIdle { try? await Task.sleep(for: .milliseconds(2)) }
    _ = daemon.connect(receiver)
    return labels
  }
  func start(_ task: BackgroundTask) { daemon.start(task) }
  func resume(_ data: [UInt8], _ task: BackgroundTask) { daemon.resume(data, task) }
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) { daemon.cancel(label, done) }
}
