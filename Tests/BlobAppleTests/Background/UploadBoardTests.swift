import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// The events of uploads, as loops over them get them.
@Suite(.timeLimit(.minutes(1))) struct UploadBoardTests {
  private let board = UploadBoard()

  private func start(_ key: String) {
    let name = BytePath(key)
    let source = PatternSource(length: 1000, seed: 1)
    _ = board.start(
      key, AddedSource(source: source, identity: name, name: name, contentType: "text/plain", metadata: [:])
    ) { _, _ in Task {} }
  }
  private func report(_ key: String, _ sent: Int64) { board.change(key) { $0.sent = sent } }

  /// A loop that shows each upload may be slow, or stand still while the app is suspended.
  @Test func onlyTheNewestOfTheUnreadChangesIsKept() async throws {
    start("a")
    let events = board.listen()
    start("b")
    for sent in 1...1000 as ClosedRange<Int64> {
      report("a", sent)
      report("b", sent * 2)
    }
    var iterator = events.makeAsyncIterator()
    let first = try #require(await iterator.next())
    let second = try #require(await iterator.next())
    #expect(first.name == "a" && first.sent == 1000)
    #expect(second.name == "b" && second.sent == 2000)
    report("a", 1001)
    #expect(await iterator.next()?.sent == 1001)
  }

  @Test func statesAreShownWithTheirReason() {
    let error = UploadError(.giveUp, .file, "a.jpg: the server refuses")
    let states: [BackgroundUpload.State] = [
      .uploading, .waiting(error, .milliseconds(4200)), .finished(nil), .failed(error), .cancelled,
    ]
    #expect(
      states.map(\.description) == [
        "uploading", "again in 4 s: a.jpg: the server refuses", "uploaded", "failed: a.jpg: the server refuses",
        "cancelled",
      ])
  }

  @Test func howAnUploadHasEndedIsAlwaysRead() async throws {
    let events = board.listen()
    for turn in 1...3 as ClosedRange<Int64> {
      start("a")
      report("a", turn)
      board.end("a", .cancelled)
    }
    start("a")
    var iterator = events.makeAsyncIterator()
    for turn in 1...3 as ClosedRange<Int64> {
      let upload = try #require(await iterator.next())
      guard case .cancelled = upload.state else {
        Issue.record("the end of turn \(turn) was replaced by \(upload)")
        return
      }
      #expect(upload.sent == turn)
    }
    guard case .uploading? = await iterator.next()?.state else {
      Issue.record("the last turn was not read")
      return
    }
  }

  @Test func aLoopThatWaitsGetsEachChangeAndEndsWhenItIsCancelled() async throws {
    let events = board.listen()
    let seen = Monitor<[Int64]>([])
    let loop = Task {
      for await upload in events { seen.update { $0.append(upload.sent) } }
    }
    start("a")
    for sent in 1...3 as ClosedRange<Int64> {
      try await eventually { seen.update(waking: .none) { $0.last } == sent - 1 }
      report("a", sent)
    }
    try await eventually { seen.update(waking: .none) { $0 } == [0, 1, 2, 3] }
    loop.cancel()
    await loop.value
    // The stream has ended; another one begins with what runs.
    var again = board.listen().makeAsyncIterator()
    #expect(await again.next()?.sent == 3)
  }
}
