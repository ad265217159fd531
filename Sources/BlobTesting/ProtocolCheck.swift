import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// One requirement of an upload protocol, checked against a server on 127.0.0.1. A protocol needs one
/// `ProtocolFixture`:
///
/// ```swift
/// @Test(arguments: ProtocolCheck.all) func conforms(_ check: ProtocolCheck) async throws { try await check.run(fixture) }
/// ```
public struct ProtocolCheck: Sendable, CustomStringConvertible {
  public let description: String
  private let body: @Sendable (ProtocolCheckContext) async throws -> Void

  init(_ description: String, _ body: @escaping @Sendable (ProtocolCheckContext) async throws -> Void) {
    self.description = description
    self.body = body
  }

  /// Throws a `CheckFailure` if the check fails or does not end within `limit`. `transport` nil uses a
  /// `SocketTransport` with short timeouts.
  public func run(
    _ fixture: ProtocolFixture, over transport: (any Transport)? = nil, within limit: Duration = .seconds(180)
  ) async throws {
    let peer = try await deadline(limit, "\(fixture): making its server") {
      try await ProtocolCheckContext.threads.run { () throws in try fixture.makePeer() }
    }
    let result: Result<Void, any Error>
    do {
      try await deadline(limit, "the check") { [body] in
        try await body(ProtocolCheckContext(fixture, peer, over: transport))
      }
      result = .success(())
    } catch {
      result = .failure(CheckFailure("\(fixture): \(self): \(error)"))
    }
    try await deadline(limit, "\(fixture): stopping its server") {
      await ProtocolCheckContext.threads.run { peer.stop() }
    }
    try result.get()
  }
}

/// The context of a running check, with the functions that checks use.
struct ProtocolCheckContext: Sendable {
  let fixture: ProtocolFixture
  let peer: any ProtocolPeer
  let transport: CountingTransport
  private let limits: PartLimits

  // Peers block their thread, and many checks run concurrently.
  static let threads = BlockingPool("protocol-checks", threads: 32)

  init(_ fixture: ProtocolFixture, _ peer: any ProtocolPeer, over transport: (any Transport)?) async throws {
    self.fixture = fixture
    self.transport = CountingTransport(
      transport ?? SocketTransport(.init(connections: 8, noProgress: .seconds(10), finishing: .seconds(10))))
    self.peer = peer
    limits = try await fixture.uploadProtocol.discover(
      UploadTarget(endpoint: peer.endpoint, url: peer.endpoint, path: "", length: nil),
      UploadContext(transport: self.transport, endpoint: peer.endpoint, traits: fixture.uploadProtocol.traits)
    ).limits
  }

  /// An uploader with many retries.
  func uploader(
    over transport: (any Transport)? = nil, through proxy: ChaosProxy? = nil, _ journal: Journal? = nil,
    retries: Int = 30
  ) -> Uploader {
    var endpoint = peer.endpoint
    var headers: HTTPHeaders = [:]
    var transport = transport ?? self.transport
    if let proxy {
      // The closure keeps the proxy alive as long as the transport.
      transport = CountingTransport(transport) { _ in withExtendedLifetime(proxy) {} }
      headers["Host"] = "127.0.0.1:\(endpoint.port)"  // The server accepts only its own host name.
      endpoint = HTTPURL("http://127.0.0.1:\(proxy.port)\(endpoint.path)")!
    }
    var uploader = Uploader(
      UploadDestination(endpoint: endpoint, uploadProtocol: fixture.uploadProtocol, limits: limits, headers: headers),
      transport: transport, journal: journal,
      retry: RetryPolicy(retries: retries, first: .milliseconds(1), longest: .milliseconds(50)),
      partSize: fixture.partSize)
    uploader.partsAtOnce = fixture.partsAtOnce
    if let memory = fixture.pipeMemory { uploader.spool.memory = memory }
    (uploader.splitting.leastLength, uploader.splitting.smallestPart) = (100_000, 60_000)
    return uploader
  }

  /// A proxy whose connections get these faults in order.
  func proxy(_ faults: ChaosProxy.Fault...) -> ChaosProxy {
    ChaosProxy(to: peer.endpoint.port, ChaosProxy.Schedule(faults))
  }

  /// Runs a blocking call on a thread that may block.
  func ask<Result: Sendable>(_ body: @escaping @Sendable (any ProtocolPeer) -> Result) async -> Result {
    await Self.threads.run { [peer] in body(peer) }
  }

  private func lastWrong(_ found: [UInt8], _ pattern: PatternSource) -> Int {
    let expected = pattern.bytes(count: found.count)
    return found.indices.last { found[$0] != expected[$0] } ?? 0
  }

  /// Requires that `name` is published with exactly these bytes.
  func expect(_ pattern: PatternSource, at name: BytePath) async throws {
    guard let found = await ask({ $0.contents(of: name) }) else { throw CheckFailure("\(name) is not there") }
    try require(Int64(found.count) == pattern.length, "\(name) has \(found.count) bytes, not \(pattern.length)")
    guard let wrong = found.withUnsafeBytes({ pattern.verify($0, at: 0) }) else { return }
    let (start, end) = (Int(wrong), min(found.count, Int(wrong) + 16))
    throw CheckFailure(
      "\(name) is wrong at byte \(wrong) of \(pattern.length): \(found[start..<end]), and not "
        + "\(pattern.bytes(at: wrong, count: end - start)); the last wrong one is \(lastWrong(found, pattern))")
  }

  func expectNothing(at name: BytePath) async throws {
    let found = await ask { $0.contents(of: name)?.count }
    try require(found == nil, "\(name) was published, with \(found ?? 0) bytes")
  }

  /// Requires that `body` throws an `UploadError` with this side.
  func expect(
    _ side: UploadError.Side, _ what: String, _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
    } catch let error as UploadError {
      try require(error.side == side, "\(what): side .\(error.side) instead of .\(side): \(error)")
      try require(!error.message.isEmpty, "\(what): the error says nothing")
      return
    }
    throw CheckFailure("\(what): nothing was thrown instead of an error with side .\(side)")
  }

  /// A source that waits at the first read of byte `byte` until the server has stored nearly everything before it and
  /// other concurrent requests have ended. It then calls `action`.
  func interrupted(
    _ source: any BlobSource, at byte: Int64, within limit: Duration = .seconds(30),
    _ action: @escaping @Sendable () -> Void
  ) -> TriggerSource {
    TriggerSource(source, at: byte) { [peer, transport] in
      pollUntil(within: limit) { transport.underWay <= 1 && peer.unfinished() >= byte - Self.slack }
      action()
    }
  }

  /// Bytes that may be in transit between the source and the server's disk.
  static let slack: Int64 = 1 << 20
}

/// Polls, because there is no notification for what other threads write to disk.
package func pollUntil(within limit: Duration = .seconds(30), _ condition: () -> Bool) {
  let clock = MonotonicClock()
  let deadline = clock.now + limit
  while !condition(), clock.now < deadline {
    // The sleep is never cancelled, so it cannot throw.
    try? clock.sleep(.milliseconds(1), Cancellation(), "poll")
  }
}

/// Counts body bytes, and runs a closure before each request.
package final class CountingTransport: Transport {
  private let transport: any Transport
  private let before: @Sendable (HTTPRequest) async -> Void
  private let counter = Counter()

  package init(_ transport: any Transport, before: @escaping @Sendable (HTTPRequest) async -> Void = { _ in }) {
    self.transport = transport
    self.before = before
  }

  /// Body bytes handed to connections so far, as reported by `Exchange.sent`. Each byte of a request counts once.
  package var sent: Int64 { counter.sent.load(ordering: .relaxed) }

  /// Bytes read from bodies so far. If the transport sends a request again because an idle connection was closed, its
  /// bytes count twice. Bytes sent from a `FileRegion` do not count.
  package var read: Int64 { counter.read.load(ordering: .relaxed) }

  /// Requests without a response so far.
  package var underWay: Int { counter.underWay.load(ordering: .relaxed) }

  package func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    await before(request)
    counter.underWay.add(1, ordering: .relaxed)
    defer { counter.underWay.subtract(1, ordering: .relaxed) }
    var on = on
    // Captures `counter` instead of `self`, because the transport's worker may retain the exchange as long as the
    // transport exists.
    on.sent = { [counter, sent = on.sent] count in
      counter.sent.add(Int64(count), ordering: .relaxed)
      sent(count)
    }
    var body = body
    if let source = body?.source { body?.source = CountedSource(source: source, counter: counter) }
    return try await transport.send(request, body: body, on)
  }

  private final class Counter: Sendable {
    let sent = Atomic<Int64>(0)
    let read = Atomic<Int64>(0)
    let underWay = Atomic<Int>(0)
  }

  private struct CountedSource: BlobSource {
    let source: any BlobSource
    let counter: Counter

    var access: BlobAccess { source.access }
    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      CountedReader(try source.open(at: offset, cancel), counter)
    }
  }

  private final class CountedReader: BlobReader {
    private let reader: any BlobReader
    private let counter: Counter

    init(_ reader: any BlobReader, _ counter: Counter) {
      self.reader = reader
      self.counter = counter
    }

    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let count = try reader.read(into: buffer)
      counter.read.add(Int64(count), ordering: .relaxed)
      return count
    }
    func fileRegion() -> FileRegion? { reader.fileRegion() }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
