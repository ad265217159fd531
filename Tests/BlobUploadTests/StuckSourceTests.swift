import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// Sources that block while they are read for a checksum and ignore cancellation, like a file on an unreachable server.
@Suite struct StuckSourceTests: S3Fixture {
  let transport = Self.connections

  private func isCancelled(_ body: () async throws -> Void) async -> Bool {
    do { try await body() } catch { return (error as? UploadError)?.side == .cancelled }
    return false
  }

  @Test func aChecksumReadThatIsStuckIsCancelledAtOnce() async throws {
    let gate = UncancellableGate()
    let task = Task { [source = StuckSource(gate)] in try await digests(of: BlobSlice(source, length: 1000), [.crc32c])
    }
    await gate.entered(1)
    task.cancel()
    #expect(await isCancelled { _ = try await task.value })
    gate.open()
  }

  /// There are more stuck reads than threads in a pool of the usual size.
  @Test func stuckChecksumReadsHoldUpNoOther() async throws {
    let gate = UncancellableGate()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask { _ = try? await digests(of: BlobSlice(StuckSource(gate), length: 1000), [.crc32c]) }
      }
      await gate.entered(20)
      _ = try? await digests(of: BlobSlice(PatternSource(length: 1000)), [.crc32c])
      group.cancelAll()
    }
    gate.open()
  }

  @Test func aSourceThatGivesNothingIsGivenUp() async throws {
    let gate = UncancellableGate()
    await #expect {
      try await readingSource(longest: .milliseconds(20)) { _, noteRead throws(BlobError) in
        noteRead(7)
        return try StuckSource(gate).open(at: 0, Cancellation()).info
      }
    } throws: { error in
      (error as? UploadError)?.side == .source && "\(error)".contains("nothing could be read for")
        && "\(error)".contains("after 7 bytes")
    }
    gate.open()
  }

  #if os(Linux)
    /// A push may compare millions of files: the timer of a read must not keep memory until it would have fired.
    @Test func readsThatHaveEndedHoldNoMemory() async throws {
      func read(_ count: Int) async throws {
        for _ in 0..<count { try await readingSource { _, _ throws(BlobError) in } }
      }
      try await read(100)
      let before = mallinfo2().uordblks
      try await read(20_000)
      func isFree() -> Bool { mallinfo2().uordblks < before + (4 << 20) }
      let end = ContinuousClock.now + .seconds(30)
      while !isFree(), .now < end { try await Task.sleep(for: .milliseconds(10)) }
      #expect(isFree())
    }
  #endif

  /// One small object is stuck; the others arrive, and cancelling ends the run.
  @Test func aStuckSmallObjectHoldsUpNoOther() async throws {
    let peer = peer()
    let desk = try await Desk()
    var queue = desk.queue(transport)
    queue.uploader = try await uploader(peer)
    queue.uploader.journal = desk.journal
    let (gate, journal) = (UncancellableGate(), desk.journal)
    let destination = queue.uploader.destination
    queue.destinationID = try await journal.destinationID(
      JournalDestination(endpoint: destination.endpoint.text, protocolName: "s3"))
    let items = (0..<100).map { number in
      let source: any BlobSource = number == 3 ? StuckSource(gate) : PatternSource(length: 1000)
      return UploadItem(
        source: source, info: BlobInfo(length: 1000), identity: BytePath("/\(number)"),
        target: destination.target(BytePath("\(number)"), length: 1000))
    }
    let left = Mutex<[UploadItem]?>(items)
    let (ended, others) = AsyncStream<Int>.makeStream()
    let outcomes = Outcomes { others.yield($0) }
    let task = Task { [queue] in try await queue.run({ left.withLock { $0.take() } }, outcomes) }
    for await count in ended where count == 99 { break }
    task.cancel()
    #expect(await isCancelled { try await task.value })
    #expect(outcomes.sent == 99 && peer.objects.count == 99)
    gate.open()
  }
}

/// Blocks when it is opened, and ignores cancellation.
private struct StuckSource: BlobSource {
  private let gate: UncancellableGate
  init(_ gate: UncancellableGate) { self.gate = gate }

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) -> BlobInfo { BlobInfo(length: 1000) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    gate.pass()
    return try PatternSource(length: 1000).open(at: offset, cancel)
  }
}
