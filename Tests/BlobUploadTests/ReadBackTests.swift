import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Tests reading files back from a server that returns them.
@Suite struct ReadBackTests {
  private func check(
    _ stored: PatternSource, against source: PatternSource, _ faults: [FaultyTransport.Fault] = []
  ) async throws -> UploadError? {
    let peer = try ServedFolder()
    let transport = SocketTransport()
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    _ = try await Uploader(put, transport: transport).upload(stored, as: "stored")
    let uploader = Uploader(put, transport: FaultyTransport(transport, faults), retry: RetryPolicy(first: .zero))
    do {
      try await uploader.verify(source, source.info, at: put.target("stored", length: source.info.length))
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [0, 1, 65_536, 3_000_000] as [Int64]) func equalBytesPass(length: Int64) async throws {
    let error = try await check(PatternSource(length: length), against: PatternSource(length: length))
    #expect(error == nil)
  }

  @Test func anUnknownLengthIsComparedToItsEnd() async throws {
    for (length, stored) in [(1000, 1000), (1000, 900), (1000, 0), (1000, 1100)] as [(Int64, Int64)] {
      let error = try await check(
        PatternSource(length: stored), against: PatternSource(length: length, knowsLength: false))
      #expect((error == nil) == (length == stored), "\(stored) bytes of \(length)")
    }
  }

  @Test(arguments: [
    (1_000_000, "differs within"), (999_999, "has only 999999 bytes of 1000000"), (1_000_001, "more than 1000000"),
  ])
  func otherBytesAreFound(length: Int64, message: String) async throws {
    let stored = PatternSource(length: length, seed: message.hasPrefix("differs") ? 1 : 0)
    let error = try await check(stored, against: PatternSource(length: 1_000_000))
    #expect(error?.side == .file)
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "nothing")")
  }

  @Test func whatIsNotGivenOutIsSaid() async throws {
    let peer = try ServedFolder()
    let put = UploadDestination(endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits())
    let source = PatternSource(length: 1000)
    let error = await #expect(throws: UploadError.self) {
      try await Uploader(put, transport: SocketTransport()).verify(
        source, source.info, at: put.target("x", length: 1000))
    }
    #expect(error?.status == 404)
    #expect(error?.side == .file)
    #expect(error?.message.contains("cannot be read back: 404") == true)
  }

  @Test func aBrokenConnectionIsTriedAgain() async throws {
    let pattern = PatternSource(length: 1000)
    let faults: [FaultyTransport.Fault] = [.before(.broken), .answer(.status(503)), .before(.timeout)]
    #expect(try await check(pattern, against: pattern, faults) == nil)
  }

  /// The source is opened on the connection's thread once content arrives, or at the end of empty content.
  @Test(arguments: [0, 1000] as [Int64]) func aSourceThatDoesNotOpenCanBeCancelled(stored: Int64) async throws {
    let peer = try ServedFolder()
    let transport = SocketTransport()
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    _ = try await Uploader(put, transport: transport).upload(PatternSource(length: stored), as: "stored")
    let source = FaultySource(PatternSource(length: 1000), .stallOpening)
    let info = PatternSource(length: 1000).info
    let outcome = Monitor<UploadError.Side??>(nil)
    let task = Task {
      do throws(UploadError) {
        try await Uploader(put, transport: transport).verify(source, info, at: put.target("stored", length: 1000))
        outcome.update { $0 = .some(nil) }
      } catch {
        outcome.update { $0 = .some(error.side) }
      }
    }
    try await Task.sleep(for: .milliseconds(200))
    #expect(outcome.update(waking: .none) { $0 } == nil)
    task.cancel()
    for _ in 0..<2000 where outcome.update(waking: .none, { $0 }) == nil { try await Task.sleep(for: .milliseconds(5)) }
    #expect(outcome.update(waking: .none) { $0 } == .some(.cancelled))
  }
}
