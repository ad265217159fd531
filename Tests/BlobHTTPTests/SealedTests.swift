import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

#if os(Linux)
  /// Bodies that are sent as TLS records.
  @Suite struct SealedTests {
    private let certificate: Certificate
    private let transport: SocketTransport

    init() throws {
      certificate = try Certificate()
      transport = SocketTransport(.init(connections: 1, caFile: certificate.path))
    }

    private func front(_ peer: ScriptedPeer, _ mode: TLSFront.Mode = .init()) -> TLSFront {
      TLSFront(certificate, to: peer.port, mode)
    }

    /// Large, small and empty bodies alternate on one connection.
    @Test(arguments: [false, true])
    func bodiesOfAllSizesArriveWholeOverOneConnection(_ only12: Bool) async throws {
      let sizes = [0, 65_535, 65_536, 3, 65_537, 300_000, 16_384 * 16, 8192, 5 << 20 | 1, 60_000, 1 << 20, 0]
      let peer = ScriptedPeer(sizes.flatMap { _ in [.readRequest, answer()] })
      let server = front(peer, .init(only12: only12))
      var expected: [UInt8] = []
      for (index, size) in sizes.enumerated() {
        let source = PatternSource(length: Int64(size), seed: UInt64(index))
        let sent = Tally()
        let response = try await transport.send(
          HTTPRequest("PUT", server.url("/\(index)")), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
        #expect(response.status == 200)
        #expect(sent.value == size)
        expected += source.bytes(count: size)
      }
      #expect(peer.seen.received.count == 1, "the connection is kept")
      let received = peer.bodies(sizes)
      #expect(received == expected)
    }

    /// OpenSSL's own records must neither overtake the body nor be lost.
    @Test(arguments: [false, true])
    func keysMayChangeInTheMiddle(_ only12: Bool) async throws {
      let source = PatternSource(length: 9 << 20, seed: 3)
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
      let server = front(peer, .init(only12: only12, renewsKeysEvery: only12 ? 4 << 20 : 100_000))
      for _ in 0..<2 { #expect(try await transport.put(server.url(), source).status == 200) }
      #expect(peer.seen.received.count == 1)
      #expect(Array(peer.body().prefix(9 << 20)) == source.bytes(count: 9 << 20))
    }

    /// The server asks for new keys up to the end of the body, so OpenSSL's replies leave behind it, and may not have arrived
    /// when the response is examined.
    @Test func aSuccessBehindARenewalOfKeysIsBelieved() async throws {
      let count = 300
      let source = PatternSource(length: 1 << 20, seed: 5)
      let peer = ScriptedPeer((0..<count).flatMap { _ in [.readRequest, answer()] })
      let server = front(peer, .init(renewsKeysEvery: 5000))
      for _ in 0..<count { #expect(try await transport.put(server.url(), source).status == 200) }
      #expect(peer.seen.received.count == 1)
    }

    /// The connection accepts almost nothing for a while. Reported progress may exceed the bytes that have left by at
    /// most the capacity of both connections' queues.
    @Test func aServerThatWaitsGetsEveryByteOnce() async throws {
      let size = 64 << 20
      let source = PatternSource(length: Int64(size), seed: 4)
      let peer = ScriptedPeer([.readHead, .read(1000), .hold, .read(size - 1000), answer()])
      let server = front(peer)
      let sent = Tally()
      let task = Task {
        try await transport.send(
          HTTPRequest("PUT", server.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
      }
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
      #expect(peer.body() == source.bytes(count: size))
    }

    @Test func aStalledConnectionIsGivenUp() async throws {
      let peer = ScriptedPeer([.readHead, .hold])
      let server = front(peer)
      let transport = SocketTransport(.init(caFile: certificate.path, noProgress: .milliseconds(300)))
      let error = await failure { () async throws(TransportError) in
        try await transport.put(server.url(), PatternSource(length: 64 << 20))
      }
      #expect(error.code == .timeout && error.message.contains("nothing moved for"), "\(error)")
    }

    static let places = [
      1, 150, 5000, 16_384, 65_000, 65_600, 131_072, 262_144, 300_001, 700_000, 1_048_575, 1_999_999,
    ]

    @Test(arguments: places)
    func aConnectionCutAtAnyByteIsAnErrorAndNotReused(_ place: Int) async throws {
      let size = 2_000_000
      let source = PatternSource(length: Int64(size), seed: 5)
      let peer = ScriptedPeer([.readRequest, answer()])
      let cutting = front(peer, .init(cutsAfter: place))
      let sent = Tally()
      let error = await failure { () async throws(TransportError) in
        try await transport.send(
          HTTPRequest("PUT", cutting.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
      }
      #expect(error.code == .broken, "\(error)")
      #expect(sent.value <= size)
      let whole = front(peer)
      #expect(try await transport.put(whole.url(), source).status == 200)
      #expect(peer.body(1) == source.bytes(count: size))
    }

    /// The reused connection looks alive, and breaks while the body is sent.
    @Test(arguments: places)
    func aDeadConnectionIsReplacedAndTheBodyBeginsAnew(_ place: Int) async throws {
      let size = 2_000_000
      let source = PatternSource(length: Int64(size), seed: 6)
      let peer = ScriptedPeer(
        [.readRequest, answer(), .readHead, .read(place), .close], [.readRequest, answer(), .readRequest, answer()])
      let server = front(peer)
      _ = try await transport.get(server.url())
      let sent = Tally()
      let response = try await transport.send(
        HTTPRequest("PUT", server.url()), body: BlobSlice(source), Exchange(sent: { sent.add($0) }))
      #expect(response.status == 200)
      #expect(peer.body(1) == source.bytes(count: size))
      #expect(sent.value == size, "nothing is told twice")
      #expect(try await transport.get(server.url()).status == 200)
      #expect(peer.seen.received.count == 2)
    }

    @Test(arguments: [9, 60_000, 2_000_000])
    func aConnectionThatDiedBetweenRequestsIsReplaced(_ size: Int) async throws {
      let source = PatternSource(length: Int64(size), seed: 7)
      let peer = ScriptedPeer([.readRequest, answer(), .close], [.readRequest, answer()])
      let server = front(peer)
      _ = try await transport.get(server.url())
      await peer.wait { $0.ended == 1 }
      #expect(try await transport.put(server.url(), source).status == 200)
      #expect(peer.body(1) == source.bytes(count: size))
    }

    @Test func aRequestThatMustNotBeRepeatedIsNot() async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
      let server = front(peer)
      _ = try await transport.get(server.url())
      let error = await failure { () async throws(TransportError) in
        try await transport.send(
          HTTPRequest("PATCH", server.url()), body: BlobSlice(PatternSource(length: 2 << 20)), Exchange())
      }
      #expect(error.code == .broken, "\(error)")
      #expect(!peer.seen.received.dropFirst().contains { !$0.isEmpty })
    }

    /// If nothing was read yet, the body can still be sent over another connection; later it cannot.
    @Test(arguments: [0, 200_000])
    func aSequentialSourceIsNotSentTwiceOnceItWasRead(_ place: Int) async throws {
      let pieces = (0..<60).map { [UInt8](repeating: $0, count: 20_000) }
      let source = ListSource(pieces: pieces, length: 1_200_000, access: .sequential)
      let peer = ScriptedPeer(
        [.readRequest, answer()] + (place == 0 ? [.close] : [.readHead, .read(place), .close]),
        [.readRequest, answer()])
      let server = front(peer)
      _ = try await transport.get(server.url())
      if place == 0 { await peer.wait { $0.ended == 1 } }
      do {
        _ = try await transport.put(server.url(), source)
        #expect(place == 0 && peer.body(1) == pieces.flatMap { $0 })
      } catch {
        #expect(place > 0 && error.code == .broken, "\(error)")
      }
    }

    @Test(arguments: [401, 413], [[ScriptedPeer.Step.close], [.discard], [.reset]])
    func aRefusalDuringTheBodyIsReadAndTheConnectionClosed(_ status: Int, _ end: [ScriptedPeer.Step]) async throws {
      let peer = ScriptedPeer(
        [.readHead, .read(100_000), answer("\(status) No", "not so")] + end, [.readRequest, answer()])
      let server = front(peer)
      let response = try await transport.put(server.url(), PatternSource(length: 64 << 20))
      #expect(response.status == status && response.body == Array("not so".utf8))
      #expect(try await transport.get(server.url()).status == 200)
      #expect(peer.seen.received.count == 2)
    }

    @Test func aServerThatIsPleasedTooSoonIsNotBelieved() async throws {
      let peer = ScriptedPeer([.readHead, answer("201 Created"), .hold])
      let server = front(peer)
      let error = await failure { () async throws(TransportError) in
        try await transport.put(server.url(), PatternSource(length: 64 << 20))
      }
      #expect(error.code == .broken && error.message.contains("answered 201 after"), "\(error)")
    }

    @Test func interimResponsesAreReadDuringTheBody() async throws {
      let told = Tally()
      let interim = "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u\r\n\r\n"
      let peer = ScriptedPeer([.readHead, .send(interim), .read(5 << 20), answer()])
      let server = front(peer)
      let response = try await transport.send(
        HTTPRequest("PUT", server.url()), body: BlobSlice(PatternSource(length: 5 << 20)),
        Exchange(interim: { told.add($0.status) }))
      #expect(response.status == 200 && told.value == 104)
    }

    @Test func aSourceThatEndsBeforeItsLengthIsAnError() async throws {
      let source = ListSource(pieces: [[UInt8](repeating: 1, count: 20_000)], length: 1_200_000)
      let peer = ScriptedPeer([.readRequest, answer()])
      let server = front(peer)
      let error = await failure { () async throws(TransportError) in try await transport.put(server.url(), source) }
      #expect(error.code == .source && error.cause?.code == .truncated, "\(error)")
      #expect(error.message.contains("ended at byte 20000 of 1200000"), "\(error)")
      _ = try await transport.get(server.url())
      #expect(peer.seen.received.count == 2)
    }

    /// Bytes from the source are sent before the source is read again, because reading may take long.
    @Test func bytesAreSentBeforeTheSourceIsReadAgain() async throws {
      let pieces = (0..<4).map { [UInt8](repeating: $0, count: 20_000) }
      let peer = ScriptedPeer([.readHead, .read(20_000), .read(20_000), .read(20_000), .read(20_000), answer()])
      let server = front(peer)
      let (asked, allowed) = (Tally(), Monitor(1))
      let source = ListSource(pieces: pieces, length: 80_000) {
        asked.add(1)
        allowed.wait { $0 >= asked.value ? () : nil }
      }
      let url = server.url()
      let task = Task { try await transport.put(url, source) }
      for number in 2...4 {
        await peer.wait { $0.steps == [number] }
        allowed.update { $0 = number }
      }
      #expect(try await task.value.status == 200)
      #expect(peer.body() == pieces.flatMap { $0 })
    }

    @Test func cancellationEndsItAtOnce() async throws {
      let peer = ScriptedPeer([.readHead, .hold])
      let server = front(peer)
      let task = Task { try await transport.put(server.url(), PatternSource(length: 64 << 20)) }
      await peer.wait { $0.steps == [1] }
      task.cancel()
      let error = await #expect(throws: TransportError.self) { try await task.value }
      #expect(error?.code == .cancelled)
    }

    /// A retry, as uploads do, succeeds. A server with a permanent defect also fails without a session.
    @Test(arguments: [false, true])
    func aServerThatBreaksOffSessionsIsNotOfferedOneAgain(_ only12: Bool) async throws {
      let once: [ScriptedPeer.Step] = [.readRequest, answer("200 OK", "", "Connection: close\r\n"), .close]
      let peer = ScriptedPeer(once, once, once)
      let server = front(peer, .init(only12: only12, breaksOffSessions: true))
      #expect(try await transport.get(server.url()).status == 200)
      let error = await failure { () async throws(TransportError) in try await transport.get(server.url()) }
      #expect(error.code == .connect, "\(error)")
      for _ in 0..<2 { #expect(try await transport.get(server.url()).status == 200) }
    }

    @Test(arguments: ["http", "socks5h"]) func aTunnelCarriesThemToo(_ scheme: String) async throws {
      let source = PatternSource(length: 3 << 20, seed: 8)
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
      let authority = try Authority()
      let server = TLSFront(try authority.certificate(for: "DNS:upload.example"), to: peer.port)
      let proxy = ProxyPeer(to: server.port)
      let transport = SocketTransport(
        .init(caFile: authority.path, proxy: Proxy("\(scheme)://127.0.0.1:\(proxy.port)")!))
      for _ in 0..<2 {
        #expect(try await transport.put(HTTPURL("https://upload.example/a")!, source).status == 200)
      }
      #expect(peer.seen.received.count == 1 && proxy.seen.connections == 1)
      #expect(Array(peer.body().suffix(3 << 20)) == source.bytes(count: 3 << 20))
      #expect(Array(peer.body().prefix(3 << 20)) == source.bytes(count: 3 << 20))
    }
  }
#endif
