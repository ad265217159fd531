import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// The app is killed at each of its steps: before and after each request, task, event, opening of the source and write
/// to the spool. The next launch finishes the upload.
@Suite(.timeLimit(.minutes(5))) struct BackgroundKillTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var uploadProtocol: BackgroundProtocol
    var length: Int64
    /// Whether the system sends everything that it has before the app is launched again.
    var finishesAlone: Bool
    var testDescription: String {
      "\(uploadProtocol), \(length) bytes\(finishesAlone ? ", the system finishes its tasks" : "")"
    }

    static let all = BackgroundProtocol.allCases.flatMap { uploadProtocol in
      [10_000, 70_000].flatMap { length in
        [false, true].map { Case(uploadProtocol: uploadProtocol, length: length, finishesAlone: $0) }
      }
    }
  }

  @Test(arguments: Case.all) func killAtEveryStepLosesNothing(_ test: Case) async throws {
    let source = PatternSource(length: test.length, seed: 3)
    var step = 1
    while try await survivesKill(at: step, test, source) { step += 1 }
    // Reading, spooling, starting, answering: at least four for each piece.
    #expect(step > 4 * Int(test.length / (16 << 10) + 1))
  }

  /// Returns false if the upload was finished before that step.
  ///
  /// `settling`: how long the second launch waits for the system to tell of tasks that ended before it.
  private func survivesKill(
    at step: Int, _ test: Case, _ source: PatternSource, settling: Duration = .milliseconds(20)
  ) async throws -> Bool {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, test.uploadProtocol.uploadProtocol) { $0.settling = settling }
    let first = try await phone.launch(killedAt: step, ["film.mov": source])
    let adding = Task { try await first.add(source, as: "film.mov") }
    let end = await first.end(of: "film.mov")
    if case .finished = end {
      try await adding.value
      first.life.kill()
      return false
    }
    try #require(end == nil, "killed at step \(step): \(String(describing: end))")
    if test.finishesAlone { try await eventually { phone.daemon.isIdle } }

    let second = try await phone.launch(["film.mov": source])
    try await second.add(source, as: "film.mov")
    if case .finished? = await second.end(of: "film.mov") {
    } else {
      // The upload may have ended before the events were asked for.
      try #require(second.uploads(named: "film.mov").isEmpty)
    }
    #expect(server.has("film.mov", source), "killed at step \(step)")
    #expect(phone.names.isEmpty, "killed at step \(step)")
    #expect(phone.largestSpool <= 64 << 10)
    // The response to a creation may be lost with the app that received it; nothing else is sent again.
    let again = test.length <= 16 << 10 ? 2 * test.length : test.length
    second.life.kill()
    // On a busy machine a short wait ends before the system has told everything, and then bytes are sent again.
    if phone.daemon.bytes > again, settling < .seconds(2) {
      return try await survivesKill(at: step, test, source, settling: .seconds(2))
    }
    #expect(phone.daemon.bytes <= again, "killed at step \(step)")
    return true
  }
}

extension App {
  func uploads(named name: BytePath) -> [BackgroundUpload] { uploader.uploads.filter { $0.name == name } }
  /// How many calls of `add` have written this name into the journal and wait for the end of other uploads.
  func waitingForRoom(_ name: BytePath) -> Int {
    uploader.board.state.withLock { $0.seats.values.count { $0.name == name && $0.added != nil } }
  }
}

/// Waits for a condition.
func eventually(line: Int = #line, _ condition: @Sendable () async -> Bool) async throws {
  // A busy machine is slow.
  let limit = ContinuousClock.now + .seconds(60)
  while ContinuousClock.now < limit {
    if await condition() { return }
    try await Task.sleep(for: .milliseconds(2))
  }
  throw CheckFailure("the condition in line \(line) did not hold within 60 s")
}
