import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Sources that are read once: a pipe throws if it is opened at another offset than where its last reader stopped.
@Suite struct PipeTests {
  static let names = ["tus", "resumable"]

  @Test(arguments: names) func aCutConnectionGoesOnWithoutReadingThePipeAgain(_ name: String) async throws {
    let pattern = PatternSource(length: 5_000_001, seed: 1)
    let (arrived, sent, peer) = try await push(
      pattern, name, spool: SpoolOptions(memory: 1 << 20),
      // The connection breaks once in the middle of a part, and once before its response.
      .init([.cutUp(after: 700_000), .cutUp(after: 1_300_000), .dropResponse(2), .cutUp(after: 900_000)]))
    #expect(arrived == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 5_000_001))
    #expect(sent < 5_000_001 + 4 << 20, "no more than what was in doubt is sent twice: \(sent)")
  }

  /// A part is never larger than the spool, so it can be sent again completely.
  @Test(arguments: names) func partsAreWhatIsHeld(_ name: String) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(SocketTransport())
    var uploader = try await self.uploader(name, peer, bodies)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 1_000_000, seed: 2)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 1_000_000))
    #expect(bodies.sizes == [0] + Array(repeating: 200_000, count: 5) + [0])
  }

  /// Acknowledgements during the request free space in the spool, so one request sends the whole pipe.
  @Test func aServerThatAcknowledgesOffsetsGetsOneBody() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let bodies = Bodies(Vouching(SocketTransport()))
    var uploader = try await self.uploader("resumable", peer, bodies)
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: 3_000_000, seed: 11)
    _ = try await uploader.upload(piped(pattern), as: "stream")
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 3_000_000))
    #expect(bodies.sizes == [0, 3_000_000, 0])
    // The limits of the user and of a proxy still apply.
    uploader.partSize = 700_000
    _ = try await uploader.upload(piped(pattern), as: "again")
    uploader.partSize = nil
    uploader.destination.expect(largestBody: 1_100_000)
    _ = try await uploader.upload(piped(pattern), as: "and again")
    #expect(peer.contents(of: "and again") == pattern.bytes(count: 3_000_000))
    let parts = Array(repeating: Int64(700_000), count: 4) + [200_000, 0]
    #expect(bodies.sizes.dropFirst(3) == ([0] + parts + [0, 1_100_000, 1_100_000, 800_000, 0])[...])
  }

  /// The connection breaks in the middle of the single body: acknowledged bytes are stored, and the spool has the rest.
  @Test func aCutAfterVouchingGoesOnWithWhatIsHeld() async throws {
    let pattern = PatternSource(length: 24_000_001, seed: 12)
    let (error, sent, peer) = try await push(
      pattern, "resumable", spool: SpoolOptions(memory: 8 << 20),
      .init([.none, .cutUp(after: 9_000_000), .cutUp(after: 3_000_000), .dropResponse(1)]))
    #expect(error == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 24_000_001))
    #expect(sent < 24_000_001 + 3 * 8 << 20, "no more than what was in doubt is sent twice: \(sent)")
  }

  @Test(arguments: names, [0, 1, 99_999, 100_000, 100_001]) func anyLengthArrives(_ name: String, _ length: Int)
    async throws
  {
    let peer = try ServedFolder()
    defer { peer.stop() }
    var uploader = try await self.uploader(name, peer, SocketTransport())
    uploader.spool = SpoolOptions(memory: 200_000)
    let pattern = PatternSource(length: Int64(length), seed: 3)
    let progress = UploadProgress()
    let source = piped(pattern)
    _ = try await uploader.upload(
      source, BlobInfo(length: nil), to: uploader.destination.target("stream", length: nil), progress: progress)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: length))
    #expect(progress.acknowledged == length)
  }

  /// A pipe of known length can be read only once, too.
  @Test(arguments: names) func aPipeThatKnowsItsLengthIsCutToo(_ name: String) async throws {
    let pattern = PatternSource(length: 3_000_000, seed: 4)
    let (error, _, peer) = try await push(
      pattern, name, spool: SpoolOptions(memory: 1 << 20), knowsLength: true,
      .init([.cutUp(after: 700_000), .none, .cutUp(after: 900_000)]))
    #expect(error == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 3_000_000))
  }

  @Test func aPutIsSentAgainWhileAllOfItIsHeld() async throws {
    let pattern = PatternSource(length: 900_000, seed: 5)
    let (error, sent, peer) = try await push(
      pattern, "put", spool: SpoolOptions(memory: 1 << 20), .init([.cutUp(after: 500_000), .dropResponse(1)]))
    #expect(error == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 900_000))
    #expect(sent > 1_800_000)
  }

  @Test func aPutThatIsNotHeldAnyMoreIsGivenUp() async throws {
    let pattern = PatternSource(length: 3_000_000, seed: 6)
    let (error, _, peer) = try await push(
      pattern, "put", spool: SpoolOptions(memory: 1 << 20), .init([.cutUp(after: 2_500_000)]))
    #expect(error?.recovery == .giveUp && error?.side == .file)
    #expect(error?.message.contains("the source is read once, and is held from byte") == true, "\(error as Any)")
    #expect(error?.message.contains("--spool-dir") == true && error?.status == nil, "\(error as Any)")
    #expect(peer.contents(of: "stream") == nil)
  }

  @Test func aPutIsHeldWholeInAFolderOnDemand() async throws {
    let folder = try ScratchFolder()
    let pattern = PatternSource(length: 3_000_000, seed: 7)
    let (error, _, peer) = try await push(
      pattern, "put", spool: SpoolOptions(memory: 1 << 20, folder: folder.path), .init([.cutUp(after: 2_500_000)]))
    #expect(error == nil)
    #expect(peer.contents(of: "stream") == pattern.bytes(count: 3_000_000))
    #expect(folder.names(in: "").isEmpty, "nothing is left behind")
  }

  /// The server had acknowledged the bytes, so the spool has dropped them.
  @Test func aServerThatLostWhatItHadIsGivenUp() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let transport = FaultyTransport(SocketTransport()) { number, request in
      if request.method == "HEAD" { return .answer(.at(0)) }
      return number == 4 ? .loseAnswer : .none
    }
    var uploader = try await self.uploader("tus", peer, transport)
    uploader.spool = SpoolOptions(memory: 200_000)
    let error = await #expect(throws: UploadError.self) {
      try await uploader.upload(piped(PatternSource(length: 1_000_000)), as: "stream")
    }
    #expect(error?.message.hasPrefix("the server has lost what it had after byte 0") == true, "\(error as Any)")
    #expect(error?.message.contains("--spool-dir") == true, "\(error as Any)")
  }

  /// If a spool folder was given, the error does not advise to give one.
  @Test func aServerThatLostItIsNotMadeUpForByAFolder() async throws {
    let (peer, folder) = (try ServedFolder(), try ScratchFolder())
    defer { peer.stop() }
    let transport = FaultyTransport(SocketTransport()) { number, request in
      if request.method == "HEAD" { return .answer(.at(0)) }
      return number == 4 ? .loseAnswer : .none
    }
    var uploader = try await self.uploader("tus", peer, transport)
    uploader.spool = SpoolOptions(memory: 200_000, folder: folder.path)
    let error = await #expect(throws: UploadError.self) {
      try await uploader.upload(piped(PatternSource(length: 1_000_000)), as: "stream")
    }
    #expect(error?.message.contains("the source is read once, and is held from byte") == true, "\(error as Any)")
    #expect(error?.message.contains("--spool-dir") == false, "\(error as Any)")
  }

  func push(
    _ pattern: PatternSource, _ name: String, spool: SpoolOptions, knowsLength: Bool = false,
    from source: (any BlobSource)? = nil,
    _ faults: ChaosProxy.Schedule
  ) async throws -> (error: UploadError?, sent: Int64, peer: ServedFolder) {
    let peer = try ServedFolder()
    let proxy = ChaosProxy(to: peer.endpoint.port, faults)
    let transport = CountingTransport(SocketTransport(.init(connections: 2))) { _ in withExtendedLifetime(proxy) {} }
    var uploader = try await self.uploader(name, peer, transport)
    uploader.destination.endpoint = HTTPURL("http://127.0.0.1:\(proxy.port)/")!
    uploader.destination.headers["Host"] = "127.0.0.1:\(peer.endpoint.port)"
    uploader.spool = spool
    var failure: UploadError?
    do {
      let source = source ?? piped(pattern, length: knowsLength ? pattern.length : nil)
      _ = try await uploader.upload(source, as: "stream")
    } catch {
      failure = error
    }
    return (failure, transport.sent, peer)
  }

  func uploader(_ name: String, _ peer: ServedFolder, _ transport: any Transport) async throws -> Uploader {
    var destination = try await UploadDestination.discover(peer.endpoint, named: name, over: SocketTransport())
    if name == "tus" { destination.uploadProtocol = Tus(wholeUpTo: 1000) }
    return Uploader(
      destination, transport: transport,
      retry: RetryPolicy(retries: 20, first: .milliseconds(1), longest: .milliseconds(20)))
  }
}

/// A pipe with a thread that writes a pattern to it.
func piped(_ pattern: PatternSource, length: Int64? = nil) -> PipeSource {
  let pipe = BlobPipe(capacity: 50_000)
  let source = PipeSource(pipe, length: length)
  SystemThread.start("pipe-writer") {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 33_333, alignment: 16)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < pattern.length {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: pattern.length - offset)))
      pattern.fill(piece, at: offset)
      do { try pipe.write(UnsafeRawBufferPointer(piece)) } catch { return }  // an upload that was given up
      offset += Int64(piece.count)
    }
    pipe.finish()
  }
  return source
}

/// Acknowledges every byte as soon as it is sent.
struct Vouching: Transport {
  private let transport: any Transport
  private let ahead: Int64
  /// `ahead`: acknowledges this many more bytes than were sent.
  init(_ transport: any Transport, ahead: Int64 = 0) { (self.transport, self.ahead) = (transport, ahead) }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    var vouching = on
    let end = Mutex(request.headers["Upload-Offset"].flatMap { Int64($0) } ?? 0)
    vouching.interim = { if $0.headers["Location"] != nil { on.interim($0) } }
    vouching.sent = { [ahead] count in
      on.sent(count)
      let offset = end.withLock { end in
        end += Int64(count)
        return end
      }
      on.interim(
        HTTPHead(status: 104, headers: ["Upload-Draft-Interop-Version": "8", "Upload-Offset": "\(offset + ahead)"]))
    }
    return try await transport.send(request, body: body, vouching)
  }
}

/// Records the bodies that were sent, and may refuse a body by its length.
final class Bodies: Transport {
  private let transport: any Transport
  private let refuse: @Sendable (Int64?) -> Int?
  private let state = Mutex<(lengths: [Int64?], sizes: [Int64], refusals: Int)>(([], [], 0))

  /// `refuse` gets a body's length, nil if it is unknown, and returns the status for the refusal.
  init(_ transport: any Transport, refuse: @escaping @Sendable (Int64?) -> Int? = { _ in nil }) {
    self.transport = transport
    self.refuse = refuse
  }

  /// Announced lengths of the bodies of POST, PATCH and PUT.
  var lengths: [Int64?] { state.withLock { $0.lengths } }
  /// Numbers of bytes that were sent in them.
  var sizes: [Int64] { state.withLock { $0.sizes } }
  var refusals: Int { state.withLock { $0.refusals } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if ["POST", "PATCH", "PUT"].contains(request.method) {
      state.withLock { $0.lengths.append(body == nil ? 0 : body?.length) }
    }
    if let body, let status = refuse(body.length) {
      state.withLock { $0.refusals += 1 }
      return .status(status)
    }
    let bytes = Counter()
    var on = on
    on.sent = { [sent = on.sent] count in
      bytes.add(count)
      sent(count)
    }
    let answer = try await transport.send(request, body: body, on)
    if ["POST", "PATCH", "PUT"].contains(request.method) { state.withLock { $0.sizes.append(bytes.value) } }
    return answer
  }

  private final class Counter: Sendable {
    private let count = Mutex<Int64>(0)
    var value: Int64 { count.withLock { $0 } }
    func add(_ more: Int) { count.withLock { $0 += Int64(more) } }
  }
}
