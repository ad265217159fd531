import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

/// Bodies that are read and sent over plain HTTP: by the worker alone (`false`), or with a thread that reads ahead for
/// it.
@Suite struct CopiedTests {
  static let both = [false, true]
  let transport = SocketTransport(.init(connections: 1))
  let size = 9 << 20 | 1

  func pattern(_ seed: UInt64 = 1) -> PatternSource { PatternSource(length: Int64(size), seed: seed) }

  func put(
    _ peer: ScriptedPeer, _ source: any BlobSource, _ sent: Tally = Tally(), over other: SocketTransport? = nil
  ) async throws(TransportError) -> HTTPResponse {
    try await (other ?? transport).send(
      HTTPRequest("PUT", peer.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
  }

  /// A separate function, because a failed `#expect` would compute the differences of so many bytes.
  func isWhole(_ peer: ScriptedPeer, _ connection: Int) -> Bool {
    peer.body(connection) == pattern().bytes(count: size)
  }

  /// Waits until all readers are closed. Each is released where it was last used, perhaps after the response.
  func expectAllClosed(_ source: AskingSource) async {
    while source.use.closed.value < source.use.opened.value { await Task.yield() }
    #expect(source.use.collisions.value == 0)
  }

  @Test(arguments: both) func bodiesOfAllSizesArriveWholeOverOneConnection(_ isAhead: Bool) async throws {
    let sizes = [
      0, 65_535, 65_536, 3, 300_000, 4 << 20 - 1, 4 << 20, 4 << 20 | 1, 8192, 9 << 20 | 1, 30 << 20, 60_000, 1 << 20,
    ]
    let peer = ScriptedPeer(sizes.flatMap { _ in [.readRequest, answer()] })
    var expected: [UInt8] = []
    for (index, size) in sizes.enumerated() {
      var source = AskingSource(PatternSource(length: Int64(size), seed: UInt64(index)), isAsking: isAhead)
      if index % 2 == 1 { source.most = 100_003 }
      let sent = Tally()
      #expect(try await put(peer, source, sent).status == 200)
      #expect(sent.value == size)
      expected += PatternSource(length: Int64(size), seed: UInt64(index)).bytes(count: size)
      await expectAllClosed(source)
    }
    #expect(peer.seen.received.count == 1, "the connection is kept")
    let isWhole = peer.bodies(sizes) == expected
    #expect(isWhole)
  }

  #if os(Linux)
    @Test func aSourceThatAsksForReadAheadIsReadByAnotherThread() async throws {
      for (isAhead, size, threads) in [(true, size, 1), (false, size, 0), (true, 1 << 20, 0)] {
        let peer = ScriptedPeer([.readRequest, answer()])
        let others = Tally()
        var source = AskingSource(PatternSource(length: Int64(size)), isAsking: isAhead)
        source.before = { if textFile("/proc/thread-self/comm") != "fullbore-worker\n" { others.add(1) } }
        _ = try await put(peer, source)
        #expect(min(others.value, 1) == threads)
      }
    }
  #endif

  @Test(arguments: both) func aServerThatWaitsGetsEveryByteOnce(_ isAhead: Bool) async throws {
    let size = 64 << 20
    let pattern = PatternSource(length: Int64(size), seed: 4)
    let source = AskingSource(pattern, isAsking: isAhead)
    let peer = ScriptedPeer([.readHead, .read(1000), .hold, .read(size - 1000), answer()])
    let sent = Tally()
    let task = Task { try await put(peer, source, sent) }
    await peer.wait { $0.steps == [2] }
    var (before, now) = (-1, sent.value)
    while now != before || now == 0 {
      before = now
      pauseThread(milliseconds: 200)
      now = sent.value
    }
    #expect(now < size, "\(now) bytes cannot have left")
    peer.release()
    #expect(try await task.value.status == 200)
    #expect(sent.value == size)
    let isWhole = peer.body() == pattern.bytes(count: size)
    #expect(isWhole)
    await expectAllClosed(source)
  }

  static let places = [1, 150, 70_000, 262_144, 524_288, 1_048_577, 4_194_304, 9_000_000]

  @Test(arguments: places, both)
  func aConnectionCutAtAnyByteIsAnErrorAndNotReused(_ place: Int, _ isAhead: Bool) async throws {
    let source = AskingSource(pattern(), isAsking: isAhead)
    let peer = ScriptedPeer([.readRequest, answer()])
    for (number, fault) in [ChaosProxy.Fault.cutUp(after: place), .reset(after: place)].enumerated() {
      let proxy = ChaosProxy(to: peer.port, ChaosProxy.Schedule([fault]))
      let url = HTTPURL("http://127.0.0.1:\(proxy.port)/a")!
      let sent = Tally()
      let error = await failure { () async throws(TransportError) in
        try await transport.send(HTTPRequest("PUT", url), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
      }
      #expect(error.code == .broken, "\(error)")
      #expect(sent.value <= size)
      #expect(try await transport.put(url, source).status == 200)
      #expect(isWhole(peer, 2 * number + 1))
    }
    await expectAllClosed(source)
  }

  /// The reused connection looks alive, and breaks while the body is sent.
  @Test(arguments: places.dropLast(2), both)
  func aDeadConnectionIsReplacedAndTheBodyBeginsAnew(_ place: Int, _ isAhead: Bool) async throws {
    let source = AskingSource(pattern(), isAsking: isAhead)
    let peer = ScriptedPeer(
      [.readRequest, answer(), .readHead, .read(place), .close], [.readRequest, answer(), .readRequest, answer()])
    _ = try await transport.get(peer.url())
    let sent = Tally()
    #expect(try await put(peer, source, sent).status == 200)
    #expect(isWhole(peer, 1))
    #expect(sent.value == size, "nothing is told twice")
    #expect(try await transport.get(peer.url()).status == 200)
    #expect(peer.seen.received.count == 2)
    await expectAllClosed(source)
  }

  @Test(arguments: both) func aConnectionThatDiedBetweenRequestsIsReplaced(_ isAhead: Bool) async throws {
    let source = AskingSource(pattern(), isAsking: isAhead)
    let peer = ScriptedPeer([.readRequest, answer(), .close], [.readRequest, answer()])
    _ = try await transport.get(peer.url())
    await peer.wait { $0.ended == 1 }
    #expect(try await put(peer, source).status == 200)
    #expect(isWhole(peer, 1))
  }

  @Test(arguments: both) func aRequestThatMustNotBeRepeatedIsNot(_ isAhead: Bool) async throws {
    let source = AskingSource(pattern(), isAsking: isAhead)
    let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
    _ = try await transport.get(peer.url())
    let error = await failure { () async throws(TransportError) in
      try await transport.send(HTTPRequest("PATCH", peer.url()), body: BlobSlice(source), Exchange())
    }
    #expect(error.code == .broken, "\(error)")
    #expect(!peer.seen.received.dropFirst().contains { !$0.isEmpty })
    #expect(source.use.opened.value == 1)
    await expectAllClosed(source)
  }

  /// If nothing was read yet, the body can still be sent over another connection; later it cannot.
  @Test(arguments: [0, 200_000]) func aSequentialSourceIsNotSentTwiceOnceItWasRead(_ place: Int) async throws {
    let source = PatternSource(length: Int64(size), seed: 1, access: .sequential)
    let peer = ScriptedPeer(
      [.readRequest, answer()] + (place == 0 ? [.close] : [.readHead, .read(place), .close]), [.readRequest, answer()])
    _ = try await transport.get(peer.url())
    if place == 0 { await peer.wait { $0.ended == 1 } }
    do {
      _ = try await put(peer, source)
      #expect(place == 0 && isWhole(peer, 1))
    } catch {
      #expect(place > 0 && error.code == .broken, "\(error)")
    }
  }

  /// On a new connection, and on a reused one.
  @Test(arguments: [401, 413], [[ScriptedPeer.Step.close], [.discard], [.reset]])
  func aRefusalDuringTheBodyIsReadAndTheConnectionClosed(_ status: Int, _ end: [ScriptedPeer.Step]) async throws {
    for before in [[ScriptedPeer.Step](), [.readRequest, answer()]] {
      for isAhead in Self.both {
        let source = AskingSource(PatternSource(length: 64 << 20), isAsking: isAhead)
        let peer = ScriptedPeer(
          before + [.readHead, .read(100_000), answer("\(status) No", "not so")] + end, [.readRequest, answer()])
        // A transport of its own: of two connections used in the same millisecond, libcurl keeps either.
        let transport = SocketTransport(.init(connections: 1))
        if !before.isEmpty { _ = try await transport.get(peer.url()) }
        let response = try await put(peer, source, over: transport)
        #expect(response.status == status && response.body == Array("not so".utf8))
        #expect(try await transport.get(peer.url()).status == 200)
        #expect(peer.seen.received.count == 2)
        await expectAllClosed(source)
      }
    }
  }

  @Test(arguments: both) func aServerThatIsPleasedTooSoonIsNotBelieved(_ isKept: Bool) async throws {
    let peer = ScriptedPeer(
      (isKept ? [.readRequest, answer()] : []) + [.readHead, answer("201 Created"), .hold], [.readRequest, answer()])
    if isKept { _ = try await transport.get(peer.url()) }
    let error = await failure { () async throws(TransportError) in
      try await put(peer, PatternSource(length: 64 << 20))
    }
    #expect(error.code == .broken && error.message.contains("answered 201 after"), "\(error)")
    #expect(try await transport.get(peer.url()).status == 200)
    #expect(peer.seen.received.count == 2)
  }

  @Test(arguments: both, both) func interimResponsesAreReadDuringTheBody(_ isAhead: Bool, _ isKept: Bool) async throws {
    let told = Tally()
    let interim = "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u\r\n\r\n"
    let peer = ScriptedPeer(
      (isKept ? [.readRequest, answer()] : []) + [.readHead, .send(interim), .read(size), answer()])
    if isKept { _ = try await transport.get(peer.url()) }
    let response = try await transport.send(
      HTTPRequest("PUT", peer.url()), body: BlobSlice(AskingSource(pattern(), isAsking: isAhead)),
      Exchange(interim: { told.add($0.status) }))
    #expect(response.status == 200 && told.value == 104)
    #expect(peer.seen.received.count == 1)
  }

  /// The worker must notice a refusal even if the connection accepts all bytes.
  @Test(arguments: both) func aRefusalIsHeardWhileTheSourceIsSlow(_ isKept: Bool) async throws {
    let peer = ScriptedPeer(
      (isKept ? [.readRequest, answer()] : []) + [.readHead, .read(1000), answer("413 Too much"), .discard])
    if isKept { _ = try await transport.get(peer.url()) }
    var source = AskingSource(pattern(), isAsking: false)
    source.most = 1000
    source.before = { pauseThread(milliseconds: 1) }
    #expect(try await put(peer, source).status == 413)
    #expect(source.use.reads.value < 2000)
  }

  @Test(arguments: both) func aStalledConnectionIsGivenUp(_ isAhead: Bool) async throws {
    let source = AskingSource(PatternSource(length: 64 << 20), isAsking: isAhead)
    let peer = ScriptedPeer([.readRequest, answer(), .readHead, .hold], [.readHead, .hold])
    let transport = SocketTransport(.init(connections: 1, noProgress: .milliseconds(300)))
    _ = try await transport.get(peer.url())
    for _ in 0..<2 {
      let error = await failure { () async throws(TransportError) in try await transport.put(peer.url(), source) }
      #expect(error.code == .timeout && error.message.contains("nothing moved for"), "\(error)")
    }
    await expectAllClosed(source)
  }

  @Test(arguments: ["HTTP/1.0 200 OK\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n"])
  func aServerThatKeepsNoConnectionGetsOneForEach(_ head: String) async throws {
    let peer = ScriptedPeer([.readRequest, .send(head + "Content-Length: 0\r\n\r\n"), .close])
    for _ in 0..<3 { #expect(try await put(peer, pattern()).status == 200) }
    #expect(peer.seen.received.count == 3)
    for number in 0..<3 { #expect(isWhole(peer, number)) }
  }

  // MARK: The source

  static let troubles: [(FaultySource.Fault, BlobError.Code)] = [
    (.truncate(at: 5_000_000), .truncated), (.fail(at: 5_000_000, BlobError(.io, "broken")), .io),
    (.changedAtEnd, .changed),
  ]

  /// Defects of the source are detected before its last byte leaves, and are reported.
  @Test(arguments: both, both) func aBrokenSourceNeverLooksWhole(_ isAhead: Bool, _ isKept: Bool) async throws {
    for (fault, code) in Self.troubles {
      let source = AskingSource(FaultySource(pattern(), fault), isAsking: isAhead)
      let peer = ScriptedPeer((isKept ? [.readRequest, answer()] : []) + [.readRequest, answer()])
      let transport = SocketTransport(.init(connections: 1))
      if isKept { _ = try await transport.get(peer.url()) }
      let error = await failure { () async throws(TransportError) in try await put(peer, source, over: transport) }
      #expect(error.code == .source && error.cause?.code == code, "\(error)")
      await peer.wait { $0.ended == 1 }
      #expect(peer.seen.received[0].count < peer.heads.utf8.count + size)
      await expectAllClosed(source)
    }
  }

  @Test(arguments: both, both) func cancellingEndsIt(_ isAhead: Bool, _ isKept: Bool) async throws {
    let source = AskingSource(PatternSource(length: 64 << 20), isAsking: isAhead)
    let peer = ScriptedPeer((isKept ? [.readRequest, answer()] : []) + [.readHead, .hold])
    if isKept { _ = try await transport.get(peer.url()) }
    let task = Task { try await put(peer, source) }
    await peer.wait { $0.heads.count == (isKept ? 2 : 1) }
    task.cancel()
    let error = await #expect(throws: TransportError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    await expectAllClosed(source)
  }
}
