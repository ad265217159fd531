import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

#if os(Linux)
  /// Servers that respond before they have the body. An early success is never accepted, over any route; a redirect or
  /// a refusal is a valid response at any time.
  @Suite struct EarlyAnswerTests {
    /// When the server responds.
    enum Phase: CaseIterable { case atOnce, afterTheHead, afterOneByte, inTheMiddle }
    /// What the server does after its response.
    enum Ending: CaseIterable {
      case holds
      /// The server keeps the connection open, but has announced that it will close it.
      case saysClose
      case closes
    }

    private func steps(_ phase: Phase, _ status: Int, _ ending: Ending) -> [ScriptedPeer.Step] {
      let before: [ScriptedPeer.Step] =
        switch phase {
        case .atOnce: []
        case .afterTheHead: [.readHead]
        case .afterOneByte: [.readHead, .read(1)]
        case .inTheMiddle: [.readHead, .read(1 << 20)]
        }
      let early = answer("\(status) Early", "why", ending == .saysClose ? "Connection: close\r\n" : "")
      return before + [early, ending == .closes ? .close : .hold]
    }

    @Test(arguments: Route.all, Phase.allCases)
    func aSuccessBeforeTheBodyWasSentIsNotBelieved(_ route: Route, _ phase: Phase) async throws {
      for ending in Ending.allCases {
        let line = try Line(route, ScriptedPeer(steps(phase, 201, ending)))
        let error = await failure { () async throws(TransportError) in try await line.send(Int64(route.hops) << 26) }
        #expect(error.code == .broken, "\(ending): \(error)")
        // If the server closes the connection, the proxies in between may lose its response.
        if ending != .closes || route.hops == 1 {
          #expect(error.message.contains("answered 201 after"), "\(ending): \(error)")
        }
      }
    }

    /// The system has taken the whole body, but the server has not received it. With TLS, a program between them would
    /// receive it at once in this test.
    @Test(arguments: Route.all.filter { $0.hops == 1 })
    func aSuccessBeforeTheBodyHasArrivedIsNotBelieved(_ route: Route) async throws {
      let line = try Line(route, ScriptedPeer([.readHead, answer("201 Early"), .hold]))
      let error = await failure { () async throws(TransportError) in try await line.send(1 << 20) }
      #expect(error.code == .broken && error.message.contains("answered 201"), "\(error)")
    }

    @Test(arguments: Route.all, Phase.allCases)
    func aRefusalBeforeTheBodyWasSentIsTheAnswer(_ route: Route, _ phase: Phase) async throws {
      for status in [307, 413, 503] {
        for ending in Ending.allCases {
          let line = try Line(route, ScriptedPeer(steps(phase, status, ending)))
          do throws(TransportError) {
            let response = try await line.send(Int64(route.hops) << 26)
            #expect(response.status == status && response.body == Array("why".utf8), "\(ending)")
          } catch {
            #expect(ending == .closes && route.hops > 1 && error.code == .broken, "\(status), \(ending): \(error)")
          }
        }
      }
    }

    @Test(arguments: Route.all) func anyAnswerAfterTheWholeBodyCounts(_ route: Route) async throws {
      for size in [0, 1, 100_000, 3_000_001] as [Int64] {
        for status in [200, 307, 413, 503] {
          let peer = ScriptedPeer([.readRequest, answer("\(status) Late", "why"), .hold])
          let line = try Line(route, peer)
          let sent = Tally()
          let response = try await line.send(size, sent)
          #expect(response.status == status && response.body == Array("why".utf8), "\(size) bytes")
          if route.body != .form { #expect(sent.value == Int(size)) }
        }
      }
    }

    /// A reused connection accepts the whole body and breaks: the count of sent bytes starts again for the next one.
    @Test func aNewAttemptBeginsWithNothingSent() async throws {
      let peer = ScriptedPeer(
        [.readRequest, answer(), .readHead, .read(600_000), .reset],
        [.readHead, answer("201 Early"), .hold])
      let reads = Tally()
      let pieces = [[UInt8]](repeating: [UInt8](repeating: 7, count: 60_000), count: 10)
      let source = ListSource(pieces: pieces, length: 600_000) {
        reads.add(1)
        // The second attempt has sent one piece, and waits for the early response.
        if reads.value != 12 { return }
        for _ in 0..<5000 where peer.seen.steps.count < 2 || peer.seen.steps[1] < 2 { pauseThread(milliseconds: 1) }
        pauseThread(milliseconds: 30)
      }
      let transport = SocketTransport(.init(connections: 1))
      _ = try await transport.get(peer.url())
      let error = await failure { () async throws(TransportError) in try await transport.put(peer.url(), source) }
      #expect(error.code == .broken && error.message.contains("answered 201 after"), "\(error)")
      #expect(peer.seen.received.count == 2 && reads.value < 20)
    }
  }

  /// A route from a transport to a server, and the form of the body.
  struct Route: Sendable, CustomTestStringConvertible {
    enum Body { case sized, unknown, trailers, form }
    var testDescription: String
    var isTLS = false
    /// The scheme of the proxy.
    var proxy: String?
    var body = Body.sized
    var headSize = 0

    /// The number of consecutive connections, each with its own buffer for sent bytes.
    var hops: Int { 1 + (isTLS ? 1 : 0) + (proxy == nil ? 0 : proxy == "https" ? 2 : 1) }

    static let all: [Route] = [
      Route(testDescription: "direct"), Route(testDescription: "direct, TLS", isTLS: true),
      Route(testDescription: "direct, form", body: .form),
      Route(testDescription: "direct, form, TLS", isTLS: true, body: .form),
      Route(testDescription: "chunked", body: .unknown),
      Route(testDescription: "chunked, TLS", isTLS: true, body: .unknown),
      Route(testDescription: "trailers", body: .trailers),
      Route(testDescription: "a long head", headSize: 9 << 10),
      Route(testDescription: "a long head, chunked", body: .unknown, headSize: 9 << 10),
      Route(testDescription: "HTTP proxy", proxy: "http"),
      Route(testDescription: "HTTP proxy, form", proxy: "http", body: .form),
      Route(testDescription: "HTTP proxy, chunked", proxy: "http", body: .unknown),
      Route(testDescription: "CONNECT", isTLS: true, proxy: "http"),
      Route(testDescription: "CONNECT, chunked", isTLS: true, proxy: "http", body: .unknown),
      Route(testDescription: "SOCKS", proxy: "socks5h"),
      Route(testDescription: "TLS proxy", proxy: "https"),
      Route(testDescription: "TLS in TLS", isTLS: true, proxy: "https"),
    ]
  }

  /// A transport, its route to a peer, and the TLS servers and the proxy of that route.
  private struct Line {
    private static let made = Result { () throws -> (Authority, Certificate) in
      let authority = try Authority()
      return (authority, try authority.certificate(for: "IP:127.0.0.1,DNS:media.example"))
    }

    let route: Route
    let peer: ScriptedPeer
    private var fronts: [TLSFront] = []
    private var proxy: ProxyPeer?
    private let transport: SocketTransport
    private let url: HTTPURL

    init(_ route: Route, _ peer: ScriptedPeer) throws {
      let (authority, certificate) = try Self.made.get()
      (self.route, self.peer) = (route, peer)
      var options = SocketTransport.Options(
        connections: 1, caFile: authority.path, noProgress: .seconds(10), finishing: .seconds(10), environment: [:])
      var port = peer.port
      if route.isTLS {
        fronts.append(TLSFront(certificate, to: port))
        port = fronts[0].port
      }
      var host = "127.0.0.1:\(port)"
      if let scheme = route.proxy {
        let proxy = ProxyPeer(to: port)
        self.proxy = proxy
        port = proxy.port
        if scheme == "https" {
          fronts.append(TLSFront(certificate, to: port))
          port = fronts.last!.port
        }
        options.proxy = Proxy("\(scheme)://127.0.0.1:\(port)")
        host = "media.example"
      }
      url = HTTPURL("\(route.isTLS ? "https" : "http")://\(host)/a")!
      transport = SocketTransport(options)
    }

    func send(_ length: Int64, _ sent: Tally = Tally()) async throws(TransportError) -> HTTPResponse {
      var request = HTTPRequest("PUT", url)
      if route.headSize > 0 { request.headers["X-Long"] = String(repeating: "x", count: route.headSize) }
      var exchange = Exchange(sent: { sent.add($0) })
      var body = BlobSlice(PatternSource(length: length, knowsLength: route.body != .unknown))
      switch route.body {
      case .sized, .unknown: break
      case .trailers:
        request.headers["Trailer"] = "X-End"
        exchange.trailers = { ["X-End": "1"] }
      case .form:
        var form = MultipartForm()
        form.appendPart(PatternSource(length: length), name: "file", fileName: "a")
        request = form.request(to: url)
        body = BlobSlice(form)
      }
      return try await transport.send(request, body: body, exchange)
    }
  }
#endif
