import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Sources that have to be read up to an offset before a reader can begin there, such as a large row of SQLite.
@Suite struct SlowSeekTests: S3Fixture {
  let transport = Self.connections
  private let pattern = PatternSource(length: 33 << 20, seed: 5)

  /// A distant server gets parts of other sources at once.
  @Test func aSourceThatIsSlowToSeekIsReadOnceFromItsBegin() async throws {
    let bench = try await PartsTests.Bench(distance: .milliseconds(12))
    bench.state.withLock { $0.partsAtOnce = nil }
    let source = SlowSource(pattern)
    _ = try await bench.uploader.upload(source, as: "video")
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Int(pattern.length)))
    #expect(bench.concats.isEmpty && source.skipped == 0, "\(source.skipped) bytes were skipped")
  }

  @Test func theUsersNumberOfPartsWins() async throws {
    let bench = try await PartsTests.Bench(distance: .milliseconds(12))
    bench.state.withLock { $0.partsAtOnce = 4 }
    _ = try await bench.uploader.upload(SlowSource(pattern), as: "video")
    #expect(bench.concats.count { $0 == "partial" } > 1)
  }

  /// S3 takes files of this size in parts only.
  @Test func numberedPartsOfItAreReadTwoAtATime() async throws {
    let peer = peer()
    let source = SlowSource(pattern)
    _ = try await uploader(peer).upload(source, as: "film.mov")
    #expect(peer.objects["film.mov"]?.bytes == pattern.bytes(count: Int(pattern.length)))
    #expect(source.mostReaders <= 2, "\(source.mostReaders)")
    #expect(Set(source.opened).count == 7, "\(source.opened)")
  }

  @Test func aRowOfPiecesIsAsSlowAsItsSlowestPiece() throws {
    let quick = ConcatenatedSource([pattern, pattern])
    let slow = ConcatenatedSource([pattern, SlowSource(pattern)])
    #expect(try !quick.info(Cancellation()).isSlowToSeek && slow.info(Cancellation()).isSlowToSeek)
  }
}

/// A pattern that says that it is slow to seek, and counts what that costs.
private final class SlowSource: BlobSource {
  private struct State {
    var opened: [Int64] = []
    var readers = 0
    var mostReaders = 0
  }
  private let pattern: PatternSource
  private let state = Mutex(State())

  init(_ pattern: PatternSource) { self.pattern = pattern }

  var access: BlobAccess { .random }
  /// The offsets at which readers were opened.
  var opened: [Int64] { state.withLock { $0.opened } }
  /// The bytes before these offsets.
  var skipped: Int64 { opened.reduce(0, +) }
  var mostReaders: Int { state.withLock { $0.mostReaders } }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    var info = pattern.info
    info.isSlowToSeek = true
    return info
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = Reader(try pattern.open(at: offset, cancel), try info(cancel), self)
    state.withLock {
      $0.opened.append(offset)
      $0.readers += 1
      $0.mostReaders = max($0.mostReaders, $0.readers)
    }
    return reader
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let source: SlowSource
    let info: BlobInfo

    init(_ reader: any BlobReader, _ info: BlobInfo, _ source: SlowSource) {
      (self.reader, self.info, self.source) = (reader, info, source)
    }

    deinit { source.state.withLock { $0.readers -= 1 } }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      try reader.read(into: buffer)
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
