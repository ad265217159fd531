import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import fullbore

/// A source that is read once for several destinations.
@Suite struct SharedSourceTests {
  private static let length = 3 << 20
  private let memory = SharedMemory()

  /// A source for each destination, and the one that is read for them.
  private func share(
    _ source: any BlobSource, destinations: Int = 2, _ rereading: SharedPass.Rereading? = nil
  ) -> (sources: [any BlobSource], count: CountingSource) {
    let counting = CountingSource(source)
    let pass = SharedPass(
      counting, length: nil, rereading ?? .anywhere { () throws(BlobError) in counting }, destinations: destinations,
      memory)
    return (pass.sources, counting)
  }

  private static let fixtures = [0, 1, 5000, 1 << 20].flatMap { length in
    let pattern = PatternSource(length: Int64(length), seed: 3)
    return [
      SourceFixture("shared \(length)", like: pattern) {
        SharedPass(
          pattern, length: Int64(length), .anywhere { () throws(BlobError) in pattern }, destinations: 2, SharedMemory()
        ).sources[0]
      },
      SourceFixture("shared \(length), read once", like: pattern, access: .sequential) {
        SharedPass(
          PatternSource(length: Int64(length), seed: 3, access: .sequential), length: nil, .never, destinations: 2,
          SharedMemory()
        ).sources[1]
      },
    ]
  }

  @Test(arguments: fixtures, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  /// Reads to the end on a thread of its own, and returns the bytes. `pause`: between two reads, for a slow destination.
  private func read(
    _ source: any BlobSource, from offset: Int64 = 0, pause: Duration? = nil, atMost most: Int = .max
  ) async throws -> [UInt8] {
    try await BlockingPool("reader", threads: 1).run { () throws(BlobError) in
      let reader = try source.open(at: offset, Cancellation())
      var bytes: [UInt8] = []
      while bytes.count < most {
        if let pause { try MonotonicClock().sleep(pause, Cancellation(), "wait") }
        let next = try reader.next()
        if next.isEmpty {
          try reader.finish()
          break
        }
        bytes += next
      }
      return bytes
    }
  }

  @Test(arguments: [2, 3]) func everyByteIsReadOnceWhereAllKeepUp(_ destinations: Int) async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let (sources, count) = share(pattern, destinations: destinations)
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for source in sources { group.addTask { try await read(source) } }
      for try await bytes in group { #expect(bytes == pattern.bytes(count: Self.length)) }
    }
    #expect(count.count == Int64(Self.length))
  }

  /// The first one has a part, then waits for an answer, and goes on where it stopped.
  @Test func partsOfOneAndTheWholeOfTheOtherAreOnePass() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let (sources, count) = share(pattern)
    async let whole = read(sources[0])
    var parts: [UInt8] = []
    while parts.count < Self.length { parts += try await read(sources[1], from: Int64(parts.count), atMost: 600_000) }
    #expect(parts == pattern.bytes(count: Self.length))
    #expect(try await whole == parts)
    #expect(count.count == Int64(Self.length))
  }

  @Test(.timeLimit(.minutes(1))) func oneThatNeverComesIsLeftBehindAndMayComeLater() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let (sources, count) = share(pattern)
    #expect(try await read(sources[0]) == pattern.bytes(count: Self.length))
    #expect(count.count == Int64(Self.length))
    // Without further delays for the next sources.
    let began = ContinuousClock.now
    for _ in 0..<5 {
      let (next, _) = share(pattern)
      _ = try await read(next[0])
    }
    #expect(began.duration(to: .now) < .seconds(10))
    #expect(try await read(sources[1]) == pattern.bytes(count: Self.length))
    #expect(count.count == Int64(2 * Self.length))
  }

  @Test(.timeLimit(.minutes(1))) func aSlowOneIsLeftBehind() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let (sources, count) = share(pattern)
    let isDone = Atomic(false)
    async let slow = {
      let bytes = try await read(sources[1], pause: .milliseconds(100))
      let wasDone = isDone.load(ordering: .relaxed)
      #expect(wasDone)
      return bytes
    }()
    #expect(try await read(sources[0]) == pattern.bytes(count: Self.length))
    isDone.store(true, ordering: .relaxed)
    #expect(try await slow == pattern.bytes(count: Self.length))
    #expect(count.count > Int64(Self.length) && count.count <= Int64(2 * Self.length))
  }

  /// What cannot be read again goes at the pace of the slowest one, until that one gives up.
  @Test(.timeLimit(.minutes(1))) func aPipeWaitsForTheSlowestUntilItLeaves() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1, access: .sequential)
    let slow = Mutex<(any BlobSource)?>(nil)
    let (first, count) = {
      let (sources, count) = share(pattern, .never)
      slow.withLock { $0 = sources[1] }
      return (sources[0], count)
    }()
    let isDone = Atomic(false)
    async let fast = {
      let bytes = try await read(first)
      isDone.store(true, ordering: .relaxed)
      return bytes
    }()
    let some = try await read(try #require(slow.withLock { $0 }), atMost: 500_000)
    #expect(some == pattern.bytes(count: some.count))
    try await Task.sleep(for: .seconds(3))
    let wasDone = isDone.load(ordering: .relaxed)
    #expect(!wasDone)
    slow.withLock { $0 = nil }
    #expect(try await fast == pattern.bytes(count: Self.length))
    #expect(count.count == Int64(Self.length))
  }

  @Test func aCancelledReaderEndsAndTheOtherGoesOn() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let gate = ThreadGate()
    let (sources, count) = share(GatedSource(source: pattern, gate: gate, at: .reading, from: 1 << 20))
    let cancel = Cancellation()
    async let cancelled: BlobError? = BlockingPool("reader", threads: 1).run { [source = sources[0]] in
      do throws(BlobError) {
        let reader = try source.open(at: 0, cancel)
        while try !reader.next().isEmpty {}
        return nil
      } catch {
        return error
      }
    }
    async let other = read(sources[1])
    #expect(await BlockingPool("gate", threads: 1).run { gate.awaitVisitor() })
    cancel.cancel()
    #expect(await cancelled?.code == .cancelled)
    gate.open()
    _ = sources
    #expect(try await other == pattern.bytes(count: Self.length))
    #expect(count.count <= Int64(2 * Self.length))
  }

  @Test func anErrorOfTheSourceReachesEachAndTheRestCanBeReadAgain() async throws {
    let pattern = PatternSource(length: Int64(Self.length), seed: 1)
    let fails = Atomic(true)
    let (sources, _) = share(BrokenOnce(source: pattern, fails: { fails.exchange(false, ordering: .relaxed) }))
    await withTaskGroup(of: BlobError.Code?.self) { group in
      for source in sources { group.addTask { await #expect(throws: BlobError.self) { try await read(source) }?.code } }
      for await code in group { #expect(code == .invalidated) }
    }
    for source in sources {
      let rest = try await read(source, from: 1 << 20)
      #expect(rest == pattern.bytes(at: 1 << 20, count: Self.length - 1 << 20))
    }
  }
}

extension BlobReader {
  /// The next bytes, 60,000 at most.
  fileprivate func next() throws(BlobError) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 60_000, alignment: 1)
    defer { buffer.deallocate() }
    return Array(buffer.prefix(try read(into: buffer)))
  }
}

/// A source whose first reader breaks after a MiB.
private struct BrokenOnce: BlobSource {
  let source: PatternSource
  let fails: @Sendable () -> Bool
  var access: BlobAccess { .random }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try source.open(at: offset, cancel)
    return fails() ? Broken(reader) : reader
  }

  private final class Broken: BlobReader {
    private let reader: any BlobReader
    private var left = 1 << 20
    init(_ reader: any BlobReader) { self.reader = reader }
    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if left == 0 { throw BlobError(.invalidated, "the connection broke") }
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(left)))
      left -= count
      return count
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
