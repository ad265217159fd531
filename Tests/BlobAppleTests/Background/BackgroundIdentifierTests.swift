import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// Two background sessions of one app, for example one that uses mobile data and one that does not, over one journal and to
/// one destination.
@Suite(.timeLimit(.minutes(2))) struct BackgroundIdentifierTests {
  private let films = (0..<3).map { PatternSource(length: 40_000, seed: UInt64($0) + 1) }
  private let names = (0..<3).map { BytePath("f\($0).mov") }

  @Test(arguments: BackgroundProtocol.allCases)
  func eachUploaderContinuesItsOwnUploads(_ uploadProtocol: BackgroundProtocol) async throws {
    let app = try TwoSessions(uploadProtocol.uploadProtocol)
    let first = try await app.launch()
    for (number, film) in films.enumerated() { try await first.uploaders[number % 2].add(film, as: names[number]) }
    try await eventually { app.daemons.allSatisfy { $0.started.contains { $0.task.length > 0 } } }
    await app.kill(first)
    let second = try await app.launch(Dictionary(uniqueKeysWithValues: zip(names, films)))
    for uploader in second.uploaders { _ = try await uploader.destinationID() }
    try await Task.sleep(for: .milliseconds(100))
    #expect(second.uploaders.map { Set($0.uploads.map(\.name)) } == [["f0.mov", "f2.mov"], ["f1.mov"]])
    for daemon in app.daemons { daemon.isHeld = false }
    try await eventually { second.uploaders.allSatisfy { $0.uploads.isEmpty } }
    for (name, film) in zip(names, films) { #expect(app.server.has(name, film)) }
    #expect(app.daemons.map(\.bytes) == [80_000, 40_000])
  }

  /// Uploads that run, and those that wait for their turn.
  @Test func cancelAllEndsOnlyTheUploadersOwnUploads() async throws {
    let app = try TwoSessions(Tus())
    let first = try await app.launch()
    let photos = (0..<34).map { PatternSource(length: 600, seed: UInt64($0) + 1) }
    for (number, photo) in photos.enumerated() {
      try await first.uploaders[0].add(photo, as: BytePath("\(number).heic"))
    }
    try await eventually { app.daemons[0].started.count == 32 }
    try await first.uploaders[1].add(films[0], as: "film.mov")
    try await first.uploaders[1].cancel("33.heic")
    try await first.uploaders[1].cancelAll()
    #expect(first.uploaders.map(\.uploads.count) == [34, 0])
    #expect(try await first.journal.unfinished().count == 34)
    await app.kill(first)
    let sources = Dictionary(uniqueKeysWithValues: photos.enumerated().map { (BytePath("\($0).heic"), $1) })
    let second = try await app.launch(sources)
    _ = try await second.uploaders[0].destinationID()
    for daemon in app.daemons { daemon.isHeld = false }
    try await eventually { second.uploaders[0].uploads.isEmpty }
    for (name, photo) in sources { #expect(app.server.has(name, photo)) }
    #expect(app.server.contents(of: "film.mov") == nil)
  }

  /// An entry of a journal of an earlier version, or of an upload in front that was killed.
  @Test func anUploadWithoutAnUploaderBelongsToTheFirst() async throws {
    let app = try TwoSessions(Tus())
    let journal = try await app.journal()
    let front = Uploader(
      app.phone.destination, transport: FaultyTransport(SocketTransport()) { _, _ in .before(.connect) },
      journal: journal)
    let sending = Task { [films] in try await front.upload(films[0], as: "f0.mov") }
    try await eventually { (try? await journal.unfinished().count) == 1 }
    sending.cancel()
    _ = await sending.result
    await journal.close()
    let launch = try await app.launch(["f0.mov": films[0]])
    for uploader in launch.uploaders { _ = try await uploader.destinationID() }
    try await Task.sleep(for: .milliseconds(100))
    #expect(launch.uploaders.map(\.uploads.count).reduce(0, +) == 1)
    for daemon in app.daemons { daemon.isHeld = false }
    try await eventually {
      launch.uploaders.allSatisfy { $0.uploads.isEmpty } && app.server.has("f0.mov", self.films[0])
    }
  }

  /// The identifier of an earlier version of the app, for example, for which there is no uploader any more.
  @Test func anUploadBelongsToTheUploaderThatHasAddedItLast() async throws {
    let app = try TwoSessions(Tus())
    let first = try await app.launch()
    try await first.uploaders[0].add(films[0], as: "f0.mov")
    try await eventually { app.daemons[0].started.contains { $0.task.length > 0 } }
    await app.kill(first)
    let second = try await app.launch(["f0.mov": films[0]], only: 1)
    _ = try await second.uploaders[0].destinationID()
    #expect(second.uploaders[0].uploads.isEmpty)
    try await second.uploaders[0].add(films[0], as: "f0.mov")
    try await eventually { app.daemons[1].started.contains { $0.task.length > 0 } }
    await app.kill(second)
    let third = try await app.launch(["f0.mov": films[0]])
    for uploader in third.uploaders { _ = try await uploader.destinationID() }
    try await Task.sleep(for: .milliseconds(100))
    #expect(third.uploaders.map(\.uploads.count) == [0, 1])
    for daemon in app.daemons { daemon.isHeld = false }
    try await eventually { third.uploaders[1].uploads.isEmpty && app.server.has("f0.mov", self.films[0]) }
  }

  @Test func anUploaderMayAdoptTheUploadsOfAnUnusedIdentifier() async throws {
    let app = try TwoSessions(Tus())
    let first = try await app.launch()
    for (number, film) in films.enumerated() {
      try await first.uploaders[0].add(
        film, as: names[number], contentType: "video/quicktime", metadata: ["kind": "film"])
    }
    try await eventually { app.daemons[0].started.count { $0.task.length > 0 } == 3 }
    // The identifier has an uploader in this process.
    let error = await #expect(throws: UploadError.self) {
      try await first.uploaders[1].adopt(uploadsOf: "session 0")
    }
    #expect(error?.message.contains("session 0") == true)
    await app.kill(first)
    let sources = Dictionary(uniqueKeysWithValues: zip(names, films))
    let second = try await app.launch(sources, only: 1)
    try await second.uploaders[0].adopt(uploadsOf: "session 1")
    try await second.uploaders[0].adopt(uploadsOf: "never used")
    #expect(second.uploaders[0].uploads.isEmpty)
    try await second.uploaders[0].adopt(uploadsOf: "session 0")
    #expect(second.uploaders[0].uploads.count == 3)
    await app.kill(second)
    // They belong to it from then on.
    let third = try await app.launch(sources)
    for uploader in third.uploaders { _ = try await uploader.destinationID() }
    #expect(third.uploaders.map(\.uploads.count) == [0, 3])
    for daemon in app.daemons { daemon.isHeld = false }
    try await eventually { third.uploaders[1].uploads.isEmpty }
    for (name, film) in sources { #expect(app.server.has(name, film)) }
    let metadata = app.daemons[1].started.compactMap { $0.task.request.headers["Upload-Metadata"] }
    #expect(metadata.allSatisfy { $0.contains("kind ZmlsbQ==") }, "film in \(metadata)")
  }

  /// A photo that was given up is that of the uploader that has added it.
  @Test func failuresAreReportedByTheUploaderThatAddedThePhoto() async throws {
    let app = try TwoSessions(Tus(), fault: .answers(422))
    for daemon in app.daemons { daemon.isHeld = false }
    let launch = try await app.launch()
    for number in 0...1 { try await launch.uploaders[number].add(films[number], as: names[number]) }
    try await eventually { launch.uploaders.allSatisfy { $0.uploads.isEmpty } }
    for number in 0...1 { #expect(try await launch.uploaders[number].failures().map(\.name) == [names[number]]) }
    try await launch.uploaders[0].cancelAll()
    #expect(try await launch.uploaders[0].failures().isEmpty)
    #expect(try await launch.uploaders[1].failures().count == 1)
  }
}

/// An app with two background sessions, whose systems send nothing before they are told to.
struct TwoSessions {
  struct Launch {
    let journal: Journal
    let uploaders: [BackgroundUploader]
    fileprivate let tasks: [DaemonTasks]
  }
  let server: ServedFolder
  let phone: Phone
  let daemons: [Daemon]

  init(
    _ uploadProtocol: any UploadProtocol, _ daemons: [Daemon]? = nil, fault: Daemon.Fault? = nil,
    spoolBytes: Int64 = 64 << 10, _ change: (inout BackgroundSettings) -> Void = { _ in }
  ) throws {
    self.daemons = daemons ?? (0...1).map { _ in Daemon(isHeld: true) { _, _ in fault } }
    server = try ServedFolder()
    phone = try Phone(server.endpoint, uploadProtocol, spoolBytes: spoolBytes, change)
  }

  func journal() async throws -> Journal { try await Journal(at: phone.scratch.path.appending("journal.sqlite")) }

  /// `only`: the one of the sessions that the app makes; nil: it makes both.
  func launch(_ sources: [BytePath: PatternSource] = [:], only: Int? = nil) async throws -> Launch {
    let (journal, identifiers) = (try await journal(), SessionIdentifiers())
    let tasks = daemons.map { DaemonTasks($0) }
    let uploaders = try daemons.indices.filter { only == nil || $0 == only }.map { number in
      var settings = phone.settings
      settings.spool = phone.scratch.path.appending(BytePath("spool\(number)"))
      return try BackgroundUploader(
        "session \(number)", phone.destination, journal: journal, tasks: tasks[number],
        direct: SocketTransport(), settings: settings, identifiers: identifiers
      ) { sources[$0] }
    }
    return Launch(journal: journal, uploaders: uploaders, tasks: tasks)
  }

  /// Nothing of the process is heard any more, and it starts and cancels no task.
  func kill(_ launch: Launch) async {
    for tasks in launch.tasks { tasks.end() }
    await launch.journal.close()
  }
}

/// The tasks of one process.
private final class DaemonTasks: BackgroundTasks {
  private let daemon: Daemon
  private let isOver = Mutex(false)

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// The process is killed.
  func end() {
    isOver.withLock { isOver in
      isOver = true
      daemon.disconnect()
    }
  }

  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] {
    isOver.withLock { $0 ? [] : daemon.connect(receiver) }
  }
  func start(_ task: BackgroundTask) { whileAlive { daemon.start(task) } }
  func resume(_ data: [UInt8], _ task: BackgroundTask) { whileAlive { daemon.resume(data, task) } }
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) { whileAlive { daemon.cancel(label, done) } }

  private func whileAlive(_ body: () -> Void) { isOver.withLock { if !$0 { body() } } }
}
