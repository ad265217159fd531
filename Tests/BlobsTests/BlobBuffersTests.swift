import BlobTesting
import TestSupport
import Blobs
import Testing

struct BlobBuffersTests {
  private let pattern = PatternSource(length: 100_001, seed: 2)

  @Test func buffersAreTheBytes() async throws {
    for size in [1000, 65_536, 1 << 20] {
      for offset in [0, 1, 100_000, 100_001] as [Int64] {
        var found: [UInt8] = []
        for try await buffer in pattern.buffers(from: offset, size: size) {
          #expect(1...size ~= buffer.count)
          found += buffer
        }
        #expect(found == pattern.bytes(at: offset, count: 100_001 - Int(offset)))
      }
    }
  }

  @Test func nothingIsReadAhead() async throws {
    let source = FaultySource(pattern)
    let iterator = source.buffers(size: 1000).makeAsyncIterator()
    #expect(source.openings == 0)
    for number in 1...3 {
      _ = try await iterator.next()
      #expect(source.reads == number)
    }
  }

  @Test func shortOrChangedSourceIsAnErrorAndThenTheEnd() async throws {
    let faults: [(FaultySource.Fault, BlobError.Code)] = [
      (.truncate(at: 5000), .truncated), (.changedAtEnd, .changed), (.failOpening(BlobError(.notFound, "")), .notFound),
      (.fail(at: 0, BlobError(.io, "")), .io),
    ]
    for (fault, code) in faults {
      let iterator = FaultySource(pattern, fault).buffers(size: 1000).makeAsyncIterator()
      let error = await failure(of: iterator)
      #expect(error?.code == code)
      #expect(try await iterator.next() == nil)
    }
  }

  @Test func cancellingTheTaskEndsAWait() async throws {
    for fault in [FaultySource.Fault.stall(at: 2000), .stallOpening] {
      let source = FaultySource(pattern, fault)
      let task = Task { await failure(of: source.buffers(size: 1000).makeAsyncIterator())?.code }
      try await until { source.openings == 1 }
      try await Task.sleep(for: .milliseconds(10))
      task.cancel()
      #expect(await task.value == .cancelled)
    }
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await failure(of: pattern.buffers().makeAsyncIterator())?.code
    }
    #expect(await task.value == .cancelled)
  }

  @Test func stalledSourcesStallNoTask() async throws {
    // More than twice the number of cooperative threads.
    let stalled = (0..<32).map { _ in
      Task { await failure(of: FaultySource(PatternSource(length: 10), .stall(at: 5)).buffers().makeAsyncIterator()) }
    }
    var count = 0
    for try await buffer in pattern.buffers() { count += buffer.count }
    #expect(count == 100_001)
    for task in stalled { task.cancel() }
    for task in stalled { #expect(await task.value?.code == .cancelled) }
  }

  @Test func droppedIterationFreesItsReader() async throws {
    let freed = Counter()
    for try await _ in Watched(pattern, freed).buffers(size: 10) { break }
    try await until { freed.count == 1 }
  }

  @Test func sequenceOfASourceIsASource() async throws {
    let source = AsyncSequenceSource(AsyncSequenceSource(pattern.buffers(size: 999)).buffers(size: 333))
    #expect(try await threads.run { () throws(BlobError) in try source.readAll() } == pattern.bytes(count: 100_001))
  }
}

private func failure(of iterator: BlobBuffers.Iterator) async -> BlobError? {
  do throws(BlobError) {
    while try await iterator.next() != nil {}
    return nil
  } catch {
    return error
  }
}

/// A source that counts its deallocated readers.
private struct Watched: BlobSource {
  let source: any BlobSource
  let freed: Counter
  var access: BlobAccess { source.access }

  init(_ source: any BlobSource, _ freed: Counter) {
    self.source = source
    self.freed = freed
  }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try source.open(at: offset, cancel), freed)
  }

  final class Reader: BlobReader {
    let reader: any BlobReader
    let freed: Counter
    init(_ reader: any BlobReader, _ freed: Counter) {
      self.reader = reader
      self.freed = freed
    }
    deinit { freed.add() }
    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
