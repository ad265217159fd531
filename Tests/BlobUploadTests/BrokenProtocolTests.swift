import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

/// Runs the checks on protocols that do nothing right: every check must fail with a message within a short time.
@Suite struct BrokenProtocolTests {
  @Test(arguments: Broken.allCases, ProtocolCheck.all)
  func everyCheckOfABrokenProtocolFailsWithinSeconds(_ broken: Broken, _ check: ProtocolCheck) async throws {
    let gate = TaskGate()
    defer { gate.open() }
    let uploadProtocol = BrokenProtocol(way: broken, gate: gate)
    let fixture = ProtocolFixture("broken", uploadProtocol, wholeUpTo: 128 << 10, noticesChanges: true) { EmptyPeer() }
    let start = ContinuousClock.now
    let error = await #expect(throws: CheckFailure.self) { try await check.run(fixture, within: .milliseconds(500)) }
    #expect(ContinuousClock.now - start < .seconds(15))
    #expect(error?.description.hasPrefix("broken: \(check.description): ") == true, "\(error?.description ?? "none")")
  }

  /// The reported reason is the upload's own error if it has one, not the deadline.
  @Test func aCheckThatWaitsForAnUploadSaysWhyThatFailed() async throws {
    let fixture = ProtocolFixture("broken", BrokenProtocol(way: .fails, gate: TaskGate()), wholeUpTo: 1) { EmptyPeer() }
    let check = try #require(ProtocolCheck.all.first { "\($0)".hasPrefix("cancelling") })
    let error = await #expect(throws: CheckFailure.self) { try await check.run(fixture) }
    #expect(error?.description.contains("it never works") == true, "\(error?.description ?? "none")")
  }
}

enum Broken: CaseIterable, Sendable {
  /// Each request fails immediately and permanently.
  case fails
  /// No request ever ends, and cancellation has no effect.
  case hangs
  /// The protocol reports success and sends nothing.
  case lies
}

private struct BrokenProtocol: UploadProtocol {
  let way: Broken
  let gate: TaskGate
  var name: String { "broken" }

  private func answer<Result>(_ lie: Result) async throws(UploadError) -> Result {
    switch way {
    case .fails: throw UploadError(.giveUp, .destination, "it never works")
    case .hangs:
      await gate.wait()
      return lie
    case .lies: return lie
    }
  }

  private var session: UploadSession { UploadSession(state: [:]) }

  func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    UploadOffer(self, PartLimits())
  }

  func create(
    _ target: UploadTarget, first: FirstPart?, _ with: UploadContext
  ) async throws(UploadError) -> Held { try await answer(.finished(UploadResult())) }

  func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    try await answer(.finished(UploadResult()))
  }

  func send(
    _ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> Sent { try await answer(.finished(UploadResult())) }

  func complete(
    _ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext
  ) async throws(UploadError) -> UploadResult { try await answer(UploadResult()) }

  func isThere(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> Bool { try await answer(true) }

  func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) { try await answer(()) }
}

/// Blocks tasks until the gate is opened, even if they are cancelled.
private final class TaskGate: Sendable {
  private struct State {
    var isOpen = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }
  private let state = Mutex(State())

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiting.append(continuation) }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// A server that never receives anything.
private struct EmptyPeer: ProtocolPeer {
  var endpoint: HTTPURL { HTTPURL("http://127.0.0.1:9/")! }
  func contents(of name: BytePath) -> [UInt8]? { nil }
  func names() -> [BytePath] { [] }
  func unfinished() -> Int64 { 0 }
  func restart() throws {}
  func stop() {}
}
