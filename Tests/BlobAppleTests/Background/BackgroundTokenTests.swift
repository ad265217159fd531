import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// A token that expires while uploads wait.
@Suite(.timeLimit(.minutes(2))) struct BackgroundTokenTests {
  private let source = PatternSource(length: 70_000, seed: 5)

  /// Answers of a server to a token that has expired. RFC 6750 section 3.1 has 401; some answer 403 with the same field.
  enum Refusal: CaseIterable {
    case plain, bearer, forbidden

    var fault: Daemon.Fault {
      switch self {
      case .plain: .answers(401)
      case .bearer: .answersWith(401, ["WWW-Authenticate": "Bearer error=\"invalid_token\""])
      case .forbidden: .answersWith(403, ["WWW-Authenticate": "Bearer realm=\"photos\", error=\"invalid_token\""])
      }
    }
  }

  @Test(arguments: BackgroundProtocol.allCases, Refusal.allCases)
  func theNextLaunchGoesOnWithAnotherToken(_ uploadProtocol: BackgroundProtocol, _ refusal: Refusal) async throws {
    let server = try ServedFolder()
    let isExpired = Flag(true)
    let daemon = Daemon(fault: { _, _ in isExpired.value ? refusal.fault : nil })
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon)
    let first = try await phone.launch()
    try await first.add(source, as: "film.mov")
    try await eventually { first.uploader.uploads.contains { $0.isRefused } }
    #expect(try await first.journal.unfinished().allSatisfy { $0.state == .intent || $0.state == .open })
    first.life.kill()
    isExpired.value = false
    let second = try await phone.launch(["film.mov": source])
    #expect(await second.end(of: "film.mov").isFinished)
    #expect(server.has("film.mov", source))
    #expect(phone.names.isEmpty)
  }

  /// A later launch sends the content type and the metadata that `add` was called with, too.
  @Test func theNextLaunchSendsTheMetadata() async throws {
    let server = try ServedFolder()
    let isExpired = Flag(true)
    let daemon = Daemon(fault: { _, _ in isExpired.value ? .answers(401) : nil })
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon)
    let first = try await phone.launch()
    let source = PatternSource(length: 7000, seed: 5)
    try await first.uploader.add(
      source, as: "film.mov", contentType: "video/quicktime", metadata: ["pairing": "live-photo"])
    try await eventually { first.uploader.uploads.contains { $0.isRefused } }
    first.life.kill()
    isExpired.value = false
    let second = try await phone.launch(["film.mov": source])
    #expect(await second.end(of: "film.mov").isFinished)
    let creations = daemon.started.filter { $0.task.request.method == "POST" }
    #expect(creations.count == 2)
    for creation in creations {
      let metadata = try #require(creation.task.request.headers["Upload-Metadata"])
      #expect(metadata.contains("pairing bGl2ZS1waG90bw=="))
      #expect(metadata.contains("filetype dmlkZW8vcXVpY2t0aW1l"))
    }
    let entry = try #require(try await second.journal.entries(.done, limit: 1).first)
    #expect(try await second.journal.additions.addition(of: entry.id)?.metadata == ["pairing": "live-photo"])
    #expect(try await second.journal.additions.dropDone().isEmpty)
    #expect(try await second.journal.additions.addition(of: entry.id) == nil)
  }

  @Test(arguments: BackgroundProtocol.allCases)
  func aRenewedTokenGoesOnInTheSameLaunch(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let isRenewed = Flag(false)
    let daemon = Daemon(fault: { _, task in
      task.request.headers["Authorization"] == "Bearer new" ? nil : .answers(401)
    })
    let phone = try Phone(
      server.endpoint, uploadProtocol.uploadProtocol, daemon: daemon,
      credentials: Phone.Credentials(
        headers: ["Authorization": "Bearer old"],
        rereading: { ["Authorization": isRenewed.value ? "Bearer new" : "Bearer old"] })
    ) { $0.renewalInterval = .milliseconds(5) }
    let app = try await phone.launch()
    let names: [BytePath] = ["a.mov", "b.mov", "c.mov"]
    for name in names { try await app.add(source, as: name) }
    try await eventually { app.uploader.uploads.count { $0.isRefused } == 3 }
    isRenewed.value = true
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(names.allSatisfy { server.has($0, source) })
  }

  /// A film takes days, and its token expires every hour.
  @Test func renewalsAreNotCountedOverPiecesThatArrive() async throws {
    let server = try ServedFolder()
    // Every piece is refused at first, so the token is renewed for each.
    let token = Mutex((number: 0, used: 0))
    let daemon = Daemon(fault: { _, task in
      guard let offset = task.request.headers["Upload-Offset"] else { return nil }
      let wanted = 1 + (Int(offset) ?? 0) / 16_384
      let token = task.request.headers["Authorization"]?.split(separator: " ").last.flatMap { Int($0) } ?? 0
      return token >= wanted ? nil : .answers(401)
    })
    let phone = try Phone(
      server.endpoint, Tus(), spoolBytes: 64 << 10, daemon: daemon,
      credentials: Phone.Credentials(
        headers: ["Authorization": "Bearer 0"],
        rereading: {
          let number = token.withLock { token in
            // Credentials are read again more often than they change.
            token.used += 1
            token.number = token.used / 2
            return token.number
          }
          return ["Authorization": "Bearer \(number)"]
        })
    ) { settings in
      settings.firstRefusalPause = .seconds(3600)
      settings.renewalInterval = .milliseconds(5)
    }
    let app = try await phone.launch()
    let film = PatternSource(length: 16_384 * 8, seed: 5)
    try await app.add(film, as: "film.mov")
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(server.has("film.mov", film))
  }

  /// The user has signed in again, and does not wait for the end of a pause.
  @Test(arguments: [true, false]) func aPauseEndsWhenTheAppAsksForIt(byAdding: Bool) async throws {
    let server = try ServedFolder()
    let isExpired = Flag(true)
    let daemon = Daemon(fault: { _, _ in isExpired.value ? .answers(401) : nil })
    let phone = try Phone(server.endpoint, Tus(), daemon: daemon) { $0.firstRefusalPause = .seconds(3600) }
    let app = try await phone.launch()
    let names: [BytePath] = ["a.mov", "b.mov"]
    for name in names { try await app.add(source, as: name) }
    for _ in 0..<2 {
      try await eventually { app.uploader.uploads.count { $0.isRefused } == 2 }
      let count = daemon.started.count
      if byAdding { for name in names { try await app.add(source, as: name) } } else { app.uploader.tryAgain() }
      try await eventually { daemon.started.count >= count + 2 }
    }
    try await eventually { app.uploader.uploads.count { $0.isRefused } == 2 }
    isExpired.value = false
    if byAdding { for name in names { try await app.add(source, as: name) } } else { app.uploader.tryAgain() }
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(names.allSatisfy { server.has($0, source) })
  }

  /// The system has a request with the token of an earlier launch.
  @Test(arguments: BackgroundProtocol.allCases)
  func aRefusalOfAnEarlierLaunchIsNotOneOfThisToken(_ uploadProtocol: BackgroundProtocol) async throws {
    let (server, phone, first) = try await Phone.holding(
      uploadProtocol.uploadProtocol,
      daemon: Daemon(isHeld: true, fault: { number, _ in number == 0 ? .answers(401) : nil }))
    let daemon = phone.daemon
    try await first.add(source, as: "film.mov")
    try await eventually { daemon.started.count == 1 }
    first.life.kill()
    daemon.isHeld = false
    let second = try await phone.launch(["film.mov": source])
    try await eventually { second.uploader.uploads.isEmpty && server.has("film.mov", source) }
  }

  /// The other uploads would be refused as well.
  @Test func theRestWaitsForAnotherToken() async throws {
    let server = try ServedFolder()
    let isExpired = Flag(true)
    let daemon = Daemon(fault: { _, _ in isExpired.value ? .answers(401) : nil })
    let phone = try Phone(server.endpoint, Tus(), spoolBytes: 1 << 20, daemon: daemon)
    let app = try await phone.launch()
    let small = PatternSource(length: 1000, seed: 1)
    for number in 0..<60 { try await app.add(small, as: BytePath("\(number).jpg")) }
    try await eventually { app.uploader.uploads.count { $0.isRefused } >= 32 }
    try await Task.sleep(for: .milliseconds(100))
    #expect(app.uploader.uploads.count == 60)
    #expect(daemon.started.count <= 32)
    #expect(try await app.journal.unfinished().allSatisfy { $0.state == .intent })
    try await app.uploader.cancel("7.jpg")
    #expect(app.uploader.uploads.count == 59)
  }
}

/// A switch that threads share.
final class Flag: Sendable {
  private let state: Mutex<Bool>
  init(_ value: Bool) { state = Mutex(value) }
  var value: Bool {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

extension BackgroundUpload {
  /// The upload waits because the server has refused its credentials.
  fileprivate var isRefused: Bool {
    guard case .waiting(let error, _) = state else { return false }
    return error.side == .destination && [401, 403].contains(error.status)
  }
}
