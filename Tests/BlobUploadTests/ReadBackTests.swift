import BlobClient
import BlobCrypto
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
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

  @Test func theErrorSaysThatAFileCannotBeReadBack() async throws {
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

  private func put(_ peer: ServedFolder) -> UploadDestination {
    UploadDestination(endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
  }

  /// More answers are cut than failures are allowed. Each brings some bytes, which need not come again.
  @Test func readingBackGoesOnWhereItWasCut() async throws {
    let peer = try ServedFolder()
    let source = PatternSource(length: 2_000_000)
    let cutting = CuttingTransport(SocketTransport(), most: 100_000)
    let uploader = Uploader(put(peer), transport: cutting, retry: RetryPolicy(retries: 3, first: .zero))
    _ = try await uploader.upload(source, as: "stored")
    try await uploader.verify(source, source.info, at: put(peer).target("stored", length: 2_000_000))
    let ranges = cutting.gets.map { $0["Range"] }
    #expect(ranges.first == .some(nil) && ranges.dropFirst().first == "bytes=100000-", "\(ranges)")
    #expect(ranges.count <= 21)
  }

  /// The bytes that have arrived before are those of the old version, and the rest is equal in both. Servers of S3 do not
  /// heed `If-Range`.
  @Test(arguments: [true, false]) func twoVersionsAreNeverComparedAsOne(_ heedsConditions: Bool) async throws {
    let peer = try ServedFolder()
    let source = PatternSource(length: 300_000)
    let other = DataSource([UInt8(9)] + Array(source.bytes(count: 300_000).dropFirst()))
    let direct = Uploader(put(peer), transport: SocketTransport())
    _ = try await direct.upload(source, as: "stored")
    let change: CuttingTransport.Change = { if !heedsConditions { $0.headers["If-Range"] = nil } }
    let cutting = CuttingTransport(SocketTransport(), most: 100_000, change) {
      var target = direct.destination.target("stored", length: 300_000)
      target.overwrite = true
      _ = try? await direct.upload(other, other.info, to: target)
    }
    let uploader = Uploader(put(peer), transport: cutting, retry: RetryPolicy(first: .zero))
    let error = await #expect(throws: UploadError.self) {
      try await uploader.verify(source, source.info, at: put(peer).target("stored", length: 300_000))
    }
    #expect(error?.message.contains("differs within") == true, "\(error?.message ?? "nothing")")
  }

  /// One server gives less than was asked for, and the other answers 200 to a request for a range, as rclone's does.
  @Test(arguments: [206, 200]) func partsOfTheRestAreComparedInTurn(_ status: Int) async throws {
    let peer = try ServedFolder()
    let source = PatternSource(length: 300_000)
    let change: CuttingTransport.Change = { request in
      guard status == 206, let start = request.headers["Range"]?.dropFirst(6).dropLast(), let first = Int(start) else {
        return
      }
      request.headers["Range"] = "bytes=\(first)-\(first + 40_000)"
    }
    let cutting = CuttingTransport(SocketTransport(), most: 100_000, change, statusOfParts: status)
    let uploader = Uploader(put(peer), transport: cutting, retry: RetryPolicy(retries: 3, first: .zero))
    _ = try await uploader.upload(source, as: "stored")
    try await uploader.verify(source, source.info, at: put(peer).target("stored", length: 300_000))
    #expect(cutting.gets.dropFirst().allSatisfy { $0["Range"] != nil }, "\(cutting.gets)")
    let other = PatternSource(length: 300_000, seed: 1)
    let error = await #expect(throws: UploadError.self) {
      try await uploader.verify(other, other.info, at: put(peer).target("stored", length: 300_000))
    }
    #expect(error?.message.contains("differs within") == true, "\(error?.message ?? "nothing")")
  }

  /// The server tells a digest that it has made anew, and sends none of the bytes.
  @Test(arguments: [DigestAlgorithm.sha256, .xxh128, .md5]) func aDigestIsAskedFor(_ algorithm: DigestAlgorithm)
    async throws
  {
    let peer = try ServedFolder()
    let source = PatternSource(length: 300_000)
    let counting = CuttingTransport(SocketTransport(), most: .max)
    let uploader = Uploader(put(peer), transport: counting)
    _ = try await uploader.upload(source, as: "in/a b")
    let digest = Digest.value(of: source.bytes(count: 300_000), algorithm)
    let files = [("in/a b", digest), ("in/a b", [UInt8(0)] + digest.dropFirst()), ("in/gone", digest)].map {
      ProvedFile(digest: $1, algorithm: algorithm, target: put(peer).target(BytePath($0), length: 300_000))
    }
    let proofs = await uploader.proofs(of: files)
    guard case .equal(let place) = proofs[0], case .different(let error) = proofs[1], case .untold = proofs[2] else {
      Issue.record("\(proofs)")
      return
    }
    #expect(place == files[0].target.url && counting.gets.isEmpty)
    #expect(error.message.contains("what the server has differs: the \(algorithm) of its 300000 bytes"))
    #expect(error.side == .file)
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

/// Breaks each answer to GET after some bytes of its content.
private final class CuttingTransport: Transport {
  private let transport: any Transport
  private let most: Int
  private let change: Change
  private let statusOfParts: Int
  private let afterFirstCut: @Sendable () async -> Void
  private let seen = Mutex<[HTTPHeaders]>([])
  private let cuts = Mutex(0)

  typealias Change = @Sendable (inout HTTPRequest) -> Void

  /// `change`: makes another request of each. `statusOfParts`: replaces 206 in the answers.
  init(
    _ transport: any Transport, most: Int, _ change: @escaping Change = { _ in }, statusOfParts: Int = 206,
    afterFirstCut: @escaping @Sendable () async -> Void = {}
  ) {
    (self.transport, self.most, self.afterFirstCut) = (transport, most, afterFirstCut)
    (self.change, self.statusOfParts) = (change, statusOfParts)
  }

  /// The fields of all requests with GET.
  var gets: [HTTPHeaders] { seen.withLock { $0 } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    guard request.method == "GET", let take = on.received else {
      return try await transport.send(request, body: body, on)
    }
    seen.withLock { $0.append(request.headers) }
    let room = Mutex(most)
    var on = on
    on.received = { bytes throws(BlobError) in
      let count = room.withLock { room in
        let count = min(room, bytes.count)
        room -= count
        return count
      }
      if count > 0 { try take(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
      if count < bytes.count { throw BlobError(.io, "cut") }
    }
    let began = on.began
    on.began = { [statusOfParts] head throws(BlobError) in
      var head = head
      if head.status == 206 { head.status = statusOfParts }
      try began?(head)
    }
    var request = request
    change(&request)
    do {
      var answer = try await transport.send(request, body: body, on)
      if answer.status == 206 { answer.head.status = statusOfParts }
      return answer
    } catch {
      guard error.cause?.message == "cut" else { throw error }
      let isFirst = cuts.withLock { cuts in
        cuts += 1
        return cuts == 1
      }
      if isFirst { await afterFirstCut() }
      throw TransportError(.broken, "GET \(request.url): cut")
    }
  }
}
