import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Comparing what arrived of a source that is read once: it cannot be read again for it.
@Suite struct VerifyTests {
  private func run(
    _ queue: UploadQueue, _ source: PatternSource, named name: BytePath
  ) async throws -> Outcomes {
    var queue = queue
    queue.verify = true
    queue.destinationID = try await queue.journal.destinationID(.put)
    let target = queue.uploader.destination.target(name, length: source.info.length)
    let item = UploadItem(source: ReadOnce(source), info: source.info, identity: name, target: target)
    let left = Mutex([item])
    let outcomes = Outcomes()
    try await queue.run({ left.withLock { $0.popLast().map { [$0] } } }, outcomes)
    return outcomes
  }

  @Test(arguments: ["put", "tus", "resumable"], [0, 1, 3_000_000] as [Int64])
  func aSourceThatIsReadOnceIsVerifiedByItsDigest(_ name: String, _ length: Int64) async throws {
    let desk = try await Desk()
    let peer = try ServedFolder()
    defer { peer.stop() }
    let transport = SocketTransport()
    var queue = desk.queue(transport)
    queue.uploader.destination = try await UploadDestination.discover(peer.endpoint, named: name, over: transport)
    for knowsLength in [true, false] {
      let source = PatternSource(length: length, access: .sequential, knowsLength: knowsLength)
      let file = "\(knowsLength)"
      let outcomes = try await run(queue, source, named: BytePath(file))
      #expect(outcomes.sent == 1, "\(outcomes.error(file)?.message ?? "")")
      #expect(peer.contents(of: BytePath(file)) == source.bytes(count: Int(length)))
    }
  }

  /// The server says that it has all, and gives out something else.
  @Test(arguments: [[], [7, 7, 7]] as [[UInt8]]) func otherBytesAreFound(_ stored: [UInt8]) async throws {
    let desk = try await Desk()
    let puts = Mutex(0)
    let peer = HTTPPeer { request in
      if request.method == "PUT" { puts.withLock { $0 += 1 } }
      return request.method == "PUT" ? .init(201) : .init(200, [:], stored)
    }
    var queue = desk.queue(SocketTransport())
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/"))
    queue.uploader.destination = UploadDestination(
      endpoint: endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    queue.uploader.destination.acquaintance.putAnswers.trust(folderOf: endpoint)
    // What arrived wrong is sent again the next time.
    for count in 1...2 {
      let outcomes = try await run(queue, PatternSource(length: 1000, access: .sequential), named: "a")
      let message = outcomes.error("a")?.message ?? ""
      #expect(message.contains("the xxh128 of its \(stored.count) bytes is not that of what was read"), "\(message)")
      #expect(puts.withLock { $0 } == count)
    }
  }
}

/// Can be opened only where its last reader has stopped, as a download without ranges.
private final class ReadOnce: BlobSource {
  private let source: PatternSource
  private let position = Mutex<Int64>(0)

  init(_ source: PatternSource) { self.source = source }

  var access: BlobAccess { .sequential }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { source.info }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let position = position.withLock { $0 }
    if offset != position { throw BlobError(.outOfRange, "open it at byte \(offset): it is at \(position)") }
    return Reader(try source.open(at: offset, cancel), self)
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let source: ReadOnce

    init(_ reader: any BlobReader, _ source: ReadOnce) {
      self.reader = reader
      self.source = source
    }

    var info: BlobInfo { reader.info }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let count = try reader.read(into: buffer)
      source.position.withLock { $0 += Int64(count) }
      return count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
