import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import fullbore

/// Tests what a destination learns of a walk that ends early.
@Suite(.timeLimit(.minutes(1))) struct SharedWalkTests {
  /// Finds nothing until it is cancelled, and then ends like one that has found everything.
  private struct HeldWalk: SourceWalk {
    let hasBegun = Monitor(false)

    func next() async -> [FoundSource]? {
      hasBegun.update { $0 = true }
      try? await Task.sleep(for: .seconds(60))
      return nil
    }
  }

  private struct EmptyWalk: SourceWalk {
    func next() async -> [FoundSource]? { nil }
  }

  private func opener() throws -> SourceOpener {
    try SourceOpener(ConnectionOptions(), jobs: nil, SilentReport(), PushCounters(), nil)
  }

  /// The tasks of a group are cancelled one after the other, and that of the destination later.
  @Test func aWalkThatIsInterruptedHasNoEnd() async throws {
    let (shared, walk, opener) = (SharedWalk(destinations: 1), HeldWalk(), try opener())
    let destination = Task { () -> Result<Int?, UploadError> in
      do throws(UploadError) { return .success(try await shared.next(for: 0)?.count) } catch { return .failure(error) }
    }
    let serving = Task { await shared.serve(walk, opener) }
    while !walk.hasBegun.update({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
    serving.cancel()
    await serving.value
    guard case .failure(let error) = await destination.value else {
      Issue.record("the destination takes the end for that of all sources")
      return
    }
    #expect(error.side == .cancelled)
  }

  @Test func aWalkThatHasFoundAllEnds() async throws {
    let (shared, opener) = (SharedWalk(destinations: 1), try opener())
    async let serving: Void = shared.serve(EmptyWalk(), opener)
    #expect(try await shared.next(for: 0) == nil)
    await serving
  }
}
