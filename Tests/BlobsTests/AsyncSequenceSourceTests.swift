import BlobTesting
import TestSupport
import Blobs
import Testing

struct AsyncSequenceSourceTests {
  @Test func buffersOfAnySizeArriveInOrder() async throws {
    let pattern = PatternSource(length: 30_000, seed: 9)
    for capacity in [1, 1000, 1 << 20] {
      let source = AsyncSequenceSource(Pieces(pattern, of: 777), capacity: capacity)
      let found = try await threads.run { () throws(BlobError) in try source.readAll(upTo: 5000) }
      #expect(found == pattern.bytes(count: 30_000))
    }
  }

  @Test func anyCollectionOfBytesIsABuffer() async throws {
    let text = AsyncStream<String.UTF8View> { stream in
      for word in ["one ", "", "twö ", "three"] { stream.yield(word.utf8) }
      stream.finish()
    }
    let source = AsyncSequenceSource(text)
    #expect(try await threads.run { () throws(BlobError) in try source.readAll() } == Array("one twö three".utf8))
  }

  @Test func sequenceIsAskedOnlyForWhatFits() async throws {
    let pieces = Pieces(PatternSource(length: 1_000_000), of: 100)
    let source = AsyncSequenceSource(pieces, capacity: 1000)
    #expect(pieces.given.count == 0, "nothing before it is opened")
    let reader = try source.open(at: 0, Cancellation())
    try await until { pieces.given.count == 11 }
    try await Task.sleep(for: .milliseconds(30))
    #expect(pieces.given.count == 11, "ten in the pipe and one that waits")
    #expect(try readNext(reader, 250).count == 250)
    try await until { pieces.given.count == 13 }
  }

  @Test func errorOfTheSequenceComesAfterItsBytes() async throws {
    struct Broken: Error {}
    let (bytes, stream) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
    stream.yield([1, 2, 3])
    stream.finish(throwing: Broken())
    let source = AsyncSequenceSource(bytes)
    let (read, error) = try await threads.run { () throws(BlobError) in
      let reader = try source.open(at: 0, Cancellation())
      return (try readNext(reader, 3), failure { () throws(BlobError) in try readNext(reader, 1) })
    }
    #expect(read == [1, 2, 3])
    #expect(error?.code == .io && error?.cause is Broken)
  }

  @Test func promisedLengthIsKept() async throws {
    func end(_ promised: Int64) async -> BlobError.Code? {
      let source = AsyncSequenceSource(Pieces(PatternSource(length: 100), of: 10), length: promised)
      let work = Background { failure { () throws(BlobError) in try BlobSlice(source).readAll() }?.code }
      return await threads.run { work.value() } ?? .io
    }
    #expect(await end(100) == nil)
    #expect(await end(101) == .truncated)
    #expect(await end(99) == .changed)
  }

  @Test func droppingTheSourceCancelsTheSequence() async throws {
    let (bytes, stream) = AsyncStream<[UInt8]>.makeStream()
    let cancelled = Counter()
    stream.onTermination = { if case .cancelled = $0 { cancelled.add() } }
    var source: AsyncSequenceSource? = AsyncSequenceSource(bytes)
    var reader = try source?.open(at: 0, Cancellation())
    source = nil
    try await Task.sleep(for: .milliseconds(30))
    #expect(cancelled.count == 0, "a reader is left")
    withExtendedLifetime(reader) {}
    reader = nil
    try await until { cancelled.count == 1 }
  }

  @Test func droppingTheSourceFreesASequenceThatWaitsForRoom() async throws {
    let pieces = Pieces(PatternSource(length: .max), of: 100)
    do {
      let source = AsyncSequenceSource(pieces, capacity: 150)
      _ = try source.open(at: 0, Cancellation())
      try await until { pieces.given.count == 2 }
    }
    try await until { pieces.iterators.count == 0 }
  }

  @Test func cancellingTheReaderEndsItsWaitAndNotTheSequence() async throws {
    let (bytes, stream) = AsyncStream<[UInt8]>.makeStream()
    let source = AsyncSequenceSource(bytes)
    let cancel = Cancellation()
    let work = Background { failure { () throws(BlobError) in try readAll(try source.open(at: 0, cancel)) }?.code }
    #expect(work.value(within: .milliseconds(30)) == nil)
    cancel.cancel()
    #expect(work.value() == .cancelled)
    stream.yield([7])
    stream.finish()
    #expect(try await threads.run { () throws(BlobError) in try source.readAll() } == [7])
  }

  @Test func cancelledWriteToAPipeEnds() async throws {
    let pipe = BlobPipe(capacity: 1)
    let source = PipeSource(pipe)
    let task = Task { () async -> BlobError.Code? in
      do throws(BlobError) { try await pipe.write([1, 2, 3]) } catch { return error.code }
      return nil
    }
    try await Task.sleep(for: .milliseconds(10))
    task.cancel()
    #expect(await task.value == .cancelled)
    withExtendedLifetime(source) {}
  }
}

/// A pattern as a sequence of buffers, which counts the bytes it has returned.
private struct Pieces: AsyncSequence, Sendable {
  let pattern: PatternSource
  let size: Int
  let given = Counter()
  /// The number of iterators that exist.
  let iterators = Counter()

  init(_ pattern: PatternSource, of size: Int) {
    self.pattern = pattern
    self.size = size
  }

  func makeAsyncIterator() -> Iterator { Iterator(self) }

  final class Iterator: AsyncIteratorProtocol {
    private let pieces: Pieces
    private var offset: Int64 = 0

    init(_ pieces: Pieces) {
      self.pieces = pieces
      pieces.iterators.add()
    }

    deinit { pieces.iterators.add(-1) }

    func next() async -> [UInt8]? {
      let count = Int(Swift.min(Int64(pieces.size), pieces.pattern.length - offset))
      if count == 0 { return nil }
      defer { offset += Int64(count) }
      pieces.given.add()
      return pieces.pattern.bytes(at: offset, count: count)
    }
  }
}
