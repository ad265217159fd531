import BlobClient
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Uploads that have finished while nobody read `events`, perhaps in the night and in an earlier launch.
@Suite(.timeLimit(.minutes(2))) struct BackgroundFinishedTests {
  private let photo = PatternSource(length: 7000, seed: 7)

  @Test func finishedUploadsAreReportedAfterARelaunch() async throws {
    let server = try ServedFolder()
    let anna = try Phone.of("anna", server, Daemon())
    let start = currentSeconds()
    let first = try await anna.launch()
    #expect(try await first.uploader.finished(since: 0).isEmpty)
    for name in ["a.heic", "b.heic"] as [BytePath] {
      try await first.uploader.add(photo, as: name, identity: BytePath("photo \(name)"))
    }
    try await eventually { first.uploader.uploads.isEmpty }
    #expect(try await first.uploader.finished(since: start).map(\.name) == ["a.heic", "b.heic"])
    first.life.kill()

    let next = try await anna.launch()
    let finished = try await next.uploader.finished(since: start)
    #expect(finished.map(\.name) == ["a.heic", "b.heic"])
    #expect(finished.map(\.identity) == ["photo a.heic", "photo b.heic"])
    #expect(finished.allSatisfy { $0.state.description == "uploaded" && $0.length == 7000 && $0.sent == 7000 })
    #expect(finished.allSatisfy { ($0.ended ?? 0) >= start && ($0.ended ?? 0) <= currentSeconds() })
    #expect(try await next.uploader.finished(since: currentSeconds() + 1).isEmpty)
    // What was uploaded before is not told anew because it is added again.
    let later = try #require(finished.compactMap(\.ended).max()) + 1
    try await eventually { currentSeconds() >= later }
    try await next.uploader.add(photo, as: "a.heic", identity: "photo a.heic")
    try await eventually { next.uploader.uploads.isEmpty }
    #expect(try await next.uploader.finished(since: later).isEmpty)
    next.life.kill()
    let bob = try await Phone.of("bob", server, Daemon(), anna.scratch).launch()
    #expect(try await bob.uploader.finished(since: 0).isEmpty)
  }

  @Test func failedUploadsAreNotAmongTheFinishedOnes() async throws {
    let server = try ServedFolder()
    let app = try await Phone.of("anna", server, Daemon(fault: { _, _ in .answers(422) })).launch()
    try await app.add(photo, as: "a.heic")
    try await eventually { app.uploader.uploads.isEmpty }
    #expect(try await app.uploader.finished(since: 0).isEmpty)
    let failure = try #require(try await app.uploader.failures().first)
    #expect(failure.name == "a.heic" && failure.ended.map { $0 > 0 } == true)
  }
}
