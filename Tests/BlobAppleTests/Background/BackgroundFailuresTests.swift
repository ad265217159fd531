import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Uploads that were given up, perhaps in the night and by an earlier launch.
@Suite(.timeLimit(.minutes(2))) struct BackgroundFailuresTests {
  private let photo = PatternSource(length: 7000, seed: 7)

  @Test func failuresAreReportedAndTriedAgainAfterARelaunch() async throws {
    let server = try ServedFolder()
    let isRefused = Flag(true)
    let daemon = Daemon(fault: { _, _ in isRefused.value ? .answers(422) : nil })
    let anna = try Phone.of("anna", server, daemon)
    let first = try await anna.launch()
    #expect(try await first.uploader.failures().isEmpty)
    try await first.uploader.add(
      photo, as: "a.heic", identity: "photo 1", contentType: "image/heic", metadata: ["kind": "photo"])
    try await eventually { first.uploader.uploads.isEmpty }
    #expect(try await first.uploader.failures().map(\.name) == ["a.heic"])
    first.life.kill()
    // Another user sees nothing of them.
    let bob = try await Phone.of("bob", server, Daemon(), anna.scratch).launch(["photo 1": photo])
    #expect(try await bob.uploader.failures().isEmpty)
    try await bob.uploader.tryAgain("a.heic")
    #expect(bob.uploader.uploads.isEmpty)
    bob.life.kill()

    let next = try await anna.launch(["photo 1": photo])
    let failures = try await next.uploader.failures()
    #expect(failures.map(\.name) == ["a.heic"] && failures.map(\.identity) == ["photo 1"])
    #expect(failures.first?.state.description.contains("422") == true)
    #expect(next.uploader.uploads.isEmpty)
    let id = try await next.journal.destinationID(of: anna.destination)
    #expect(try await next.journal.unfinished(at: [id]).count == 1)
    isRefused.value = false
    let count = daemon.started.count
    try await next.uploader.tryAgain("b.heic")
    #expect(daemon.started.count == count)
    try await next.uploader.tryAgain("a.heic")
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(server.has("a.heic", photo))
    let metadata = try #require(daemon.started.compactMap { $0.task.request.headers["Upload-Metadata"] }.last)
    #expect(metadata.contains("filetype aW1hZ2UvaGVpYw=="), "image/heic in \(metadata)")
    #expect(metadata.contains("kind cGhvdG8="), "photo in \(metadata)")
    #expect(try await next.uploader.failures().isEmpty)
  }

  @Test func theErrorOfASourceThatCannotBeOpenedIsThrown() async throws {
    let server = try ServedFolder()
    let phone = try Phone.of("anna", server, Daemon(fault: { _, _ in .answers(422) }))
    let app = try await phone.launch()
    try await app.add(photo, as: "a.heic")
    try await eventually { app.uploader.uploads.isEmpty }
    let error = await #expect(throws: UploadError.self) { try await app.uploader.tryAgain("a.heic") }
    #expect(error?.side == .source && error?.message.contains("a.heic") == true)
    try await app.uploader.cancelAll()
    #expect(try await app.uploader.failures().isEmpty)
  }

  /// What the system does with two sessions of one identifier is not defined.
  @Test func thereIsOneUploaderForEachIdentifier() async throws {
    let server = try ServedFolder()
    let phone = try Phone.of("anna", server, Daemon())
    let journal = try await Journal(at: phone.scratch.path.appending("journal.sqlite"))
    let identifiers = SessionIdentifiers()
    func uploader(_ identifier: String, _ destination: UploadDestination) throws -> BackgroundUploader {
      try BackgroundUploader(
        identifier, destination, journal: journal, tasks: NoTasks(), direct: SocketTransport(),
        settings: phone.settings, identifiers: identifiers
      ) { _ in nil }
    }
    // An initializer that throws takes none.
    #expect(throws: UploadError.self) {
      try uploader(
        "one", UploadDestination(endpoint: server.endpoint, uploadProtocol: PlainPut(), limits: PartLimits()))
    }
    let first = try uploader("one", phone.destination)
    #expect(throws: UploadError.self) { try uploader("one", phone.destination) }
    let second = try uploader("two", phone.destination)
    #expect(first.uploads.isEmpty && second.uploads.isEmpty)
  }
}

private struct NoTasks: BackgroundTasks {
  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] { [] }
  func start(_ task: BackgroundTask) {}
  func resume(_ data: [UInt8], _ task: BackgroundTask) {}
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) { done() }
}
