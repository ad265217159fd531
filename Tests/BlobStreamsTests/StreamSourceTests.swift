import BlobStreams
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Testing

struct StreamSourceTests {
  @Test(arguments: SourceFixture.streams, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  @Test func boundInputIsUploadedWhileItIsProduced() throws {
    let pattern = PatternSource(length: 5_000_000, seed: 6)
    let pair = open(capacity: 4096)
    let source = StreamSource(pair.input, length: pattern.length)
    SystemThread.start("producer") { produce(pattern, into: pair.output) }
    let reader = try BlobSlice(source).open(Cancellation())
    var offset: Int64 = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 10_000, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = try reader.read(into: buffer), count > 0 {
      try #require(pattern.verify(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), at: offset) == nil)
      offset += Int64(count)
    }
    #expect(offset == pattern.length)
  }

  @Test func errorsContainTheErrorOfTheStream() throws {
    let missing = StreamSource(InputStream(fileAtPath: "/nonexistent/file")!)
    let error = read(missing)
    #expect(error?.code == .io && error?.cause != nil && error?.message.contains("byte 0") == true)

    let broken = FaultySource(PatternSource(length: 10), .fail(at: 5, BlobError(.permission, "not yours", errno: 13)))
    let own = read(StreamSource(BlobInputStream(broken)))
    #expect(own?.code == .permission && own?.errno == 13)

    let pair = open()
    pair.output.fail(BlobError(.changed, "another version"))
    #expect(read(StreamSource(pair.input))?.message == "another version")
  }

  @Test func streamThatDoesNotWaitIsRefused() throws {
    let stalled = FaultySource(PatternSource(length: 10), .stall(at: 0))
    let error = read(StreamSource(BlobInputStream(stalled, asynchronous: true)))
    #expect(error?.code == .unsupported && error?.errno == EAGAIN)
  }

  @Test func promisedLengthIsKept() throws {
    func end(_ count: Int, promised: Int64) -> BlobError.Code? {
      let data = Data(repeating: 1, count: count)
      return failure { () throws(BlobError) in
        _ = try readAll(try BlobSlice(StreamSource(InputStream(data: data), length: promised)).open(Cancellation()))
      }?.code
    }
    #expect(end(10, promised: 10) == nil && end(0, promised: 0) == nil)
    #expect(end(9, promised: 10) == .truncated)
    #expect(end(11, promised: 10) == .changed && end(1, promised: 0) == .changed)
  }

  @Test func streamThatLiesIsNotBelieved() throws {
    final class Liar: InputStream {
      init() { super.init(data: Data()) }
      override func open() {}
      override var streamStatus: Stream.Status { .open }
      override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int { maxLength + 1 }
    }
    #expect(read(StreamSource(Liar()))?.code == .io)
  }

  @Test func streamIsClosedWithItsSource() throws {
    let pair = open(capacity: 1)
    do { _ = try StreamSource(pair.input).open(at: 0, Cancellation()) }
    #expect(pair.input.streamStatus == .closed)
    #expect(pair.output.write([1], maxLength: 1) == -1)
  }
}

extension SourceFixture {
  fileprivate static let streams = [0, 1, 5000, 300_000].flatMap { length -> [SourceFixture] in
    let pattern = PatternSource(length: Int64(length), seed: 1)
    let bytes = pattern.bytes(count: length)
    return [
      stream("Foundation's, of data", pattern) { InputStream(data: Data(bytes)) },
      stream("our own", pattern) { BlobInputStream(pattern) },
      stream("our own that promises", pattern, promises: true) { BlobInputStream(pattern) },
      stream("bound", pattern, stalls: true) { bound(pattern) },
    ]
  }

  private static func stream(
    _ name: String, _ pattern: PatternSource, promises: Bool = false, stalls: Bool = false,
    _ make: @escaping @Sendable () -> sending InputStream
  ) -> SourceFixture {
    let stalled: (@Sendable () throws -> any BlobSource)? = if stalls { { Held() } } else { nil }
    return SourceFixture(
      "\(name), \(pattern.length)", like: pattern, access: .sequential, knowsLength: promises, hasValidator: false,
      stalled: stalled
    ) { StreamSource(make(), length: promises ? pattern.length : nil) }
  }

  /// A bound pair whose writer writes nothing.
  private struct Held: BlobSource {
    let pair: BoundStreams
    let source: StreamSource
    init() {
      let pair = BlobStreamsTests.open()
      self.pair = pair
      nonisolated(unsafe) let input = pair.input
      source = StreamSource(input)
    }
    var access: BlobAccess { source.access }
    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      try source.open(at: offset, cancel)
    }
  }
}

/// The input of a pair into which a thread writes.
private func bound(_ pattern: PatternSource) -> sending InputStream {
  let pair = open(capacity: 1000)
  nonisolated(unsafe) let output = pair.output
  SystemThread.start("producer") { produce(pattern, into: output, chunk: 3333) }
  nonisolated(unsafe) let input = pair.input
  return input
}

private func read(_ source: StreamSource) -> BlobError? {
  failure { () throws(BlobError) in try readAll(try source.open(at: 0, Cancellation())) }
}

private func readAll(_ reader: any BlobReader) throws(BlobError) -> Int {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
  defer { buffer.deallocate() }
  var length = 0
  while case let count = try reader.read(into: buffer), count > 0 { length += count }
  return length
}
