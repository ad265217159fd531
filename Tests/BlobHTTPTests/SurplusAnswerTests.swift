import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

#if os(Linux)
  /// A server that sends two responses to one request: the second is not the response to the next request.
  @Suite struct SurplusAnswerTests {
    /// How requests are sent.
    enum Way: CaseIterable { case direct, tls, proxy, unknownLength, unknownLengthOverTLS }
    /// When the second response arrives.
    enum Moment: CaseIterable { case withTheFirst, withItsContent, later }

    private static let first = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
    private static let surplus = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"

    private func script(_ moment: Moment) -> [ScriptedPeer.Step] {
      let steps: [ScriptedPeer.Step] =
        switch moment {
        case .withTheFirst: [.send(Self.first + "abc" + Self.surplus)]
        // Usually long enough for the head to be read alone.
        case .withItsContent: [.send(Self.first), .pause(30), .send("abc" + Self.surplus)]
        case .later: [.send(Self.first + "abc"), .hold, .send(Self.surplus)]
        }
      return [.readRequest] + steps + [.readRequest, answer("404 Not Found")]
    }

    @Test(arguments: Way.allCases, Moment.allCases)
    func theSecondAnswerIsNotTakenForTheNext(_ way: Way, _ moment: Moment) async throws {
      let peer = ScriptedPeer(script(moment), [.readRequest, answer("404 Not Found")])
      let certificate = try Certificate()
      var options = SocketTransport.Options(connections: 1, caFile: certificate.path, environment: [:])
      var (url, port) = (peer.url(), peer.port)
      var servers: [AnyObject] = []
      switch way {
      case .direct, .unknownLength: break
      case .tls, .unknownLengthOverTLS:
        let front = TLSFront(certificate, to: peer.port)
        (url, port) = (front.url(), front.port)
        servers.append(front)
      case .proxy:
        let proxy = ProxyPeer(to: peer.port)
        options.proxy = Proxy("http://127.0.0.1:\(proxy.port)")
        (url, port) = (HTTPURL("http://media.example/a")!, proxy.port)
        servers.append(proxy)
      }
      let transport = SocketTransport(options)
      func send() async throws -> Int {
        if way == .unknownLength || way == .unknownLengthOverTLS {
          return try await transport.put(url, PatternSource(length: 10, knowsLength: false)).status
        }
        return try await transport.get(url).status
      }
      #expect(try await send() == 200)
      if moment == .later {
        peer.release()
        // Waits until the response has arrived in the local socket, or until the resting worker has found it there.
        let deadline = ContinuousClock.now + .seconds(10)
        while unreadBytes(from: port) == 0, !transport.mixesResponses(at: url), .now < deadline {
          pauseThread(milliseconds: 5)
        }
      }
      #expect(try await send() == 404)
      withExtendedLifetime(servers) {}
    }

    /// The next one could come when the next request has been sent, and would be taken for its response.
    @Test(arguments: Moment.allCases) func aServerThatSendsSurplusResponsesGetsOneRequestPerConnection(_ moment: Moment)
      async throws
    {
      let more: [ScriptedPeer.Step] = [.readRequest, answer(), .readRequest, answer(), .hold]
      let peer = ScriptedPeer(script(moment), more)
      let transport = SocketTransport(.init(connections: 1))
      _ = try await transport.get(peer.url())
      if moment == .later {
        peer.release()
        let deadline = ContinuousClock.now + .seconds(10)
        while unreadBytes(from: peer.port) == 0, !transport.mixesResponses(at: peer.url()), .now < deadline {
          pauseThread(milliseconds: 5)
        }
      }
      for _ in 0..<3 { _ = try await transport.get(peer.url()) }
      #expect(peer.seen.received.count == 4)
    }

    /// The success was sent before the request had arrived, so it belongs to an earlier request.
    @Test func aSuccessBeforeTheEndOfALaterRequestIsOne() async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1000), answer("201 Early"), .hold])
      let transport = SocketTransport(.init(connections: 1))
      _ = try await transport.get(peer.url())
      #expect(!transport.mixesResponses(at: peer.url()))
      let error = await failure { () async throws(TransportError) in
        try await transport.put(peer.url(), PatternSource(length: 1 << 26))
      }
      #expect(error.code == .broken && transport.mixesResponses(at: peer.url()), "\(error)")
    }

    /// The server, or a program before it, has lost the connection just after a success.
    @Test(arguments: ["http", "https"]) func aSuccessBeforeALossIsDoubted(_ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer("201 Created"), .hold, .reset])
      let certificate = try Certificate()
      let front = scheme == "https" ? TLSFront(certificate, to: peer.port) : nil
      let url = front?.url() ?? peer.url()
      let transport = SocketTransport(.init(connections: 1, caFile: certificate.path))
      for upload in [6, 7] as [Int64] {
        var exchange = Exchange()
        exchange.upload = upload
        let body = BlobSlice(PatternSource(length: 1000), length: 1000)
        _ = try await transport.send(HTTPRequest("PUT", url), body: body, exchange)
      }
      await transport.checkIdleConnections(at: url)
      #expect(!transport.hasDoubts)
      peer.release()
      await peer.wait { $0.ended == 1 }
      pauseThread(milliseconds: 50)
      await transport.checkIdleConnections(at: url)
      #expect(transport.takeDoubted(at: url) == [7])
      #expect(transport.takeDoubted(at: url) == [] && !transport.mixesResponses(at: url))
    }

    /// Some servers announce so that they close an idle connection. RFC 9110 §15.5.9.
    @Test func aTimeoutOfAnIdleConnectionIsNoSurplusResponse() async throws {
      let idle = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      let more: [ScriptedPeer.Step] = [.readRequest, answer(), .readRequest, answer(), .hold]
      let peer = ScriptedPeer([.readRequest, answer(), .send(idle), .close], more)
      let transport = SocketTransport(.init(connections: 1))
      _ = try await transport.get(peer.url())
      await peer.wait { $0.ended == 1 }
      for _ in 0..<2 { _ = try await transport.get(peer.url()) }
      #expect(peer.seen.received.count == 2)
    }
  }

  /// Bytes in the receive queues of sockets that are connected to this port. proc(5), /proc/net/tcp.
  private func unreadBytes(from port: Int) -> Int {
    var remote = String(port, radix: 16, uppercase: true)
    while remote.count < 4 { remote = "0" + remote }
    return textFile("/proc/net/tcp").split(separator: "\n").reduce(0) { sum, line in
      let words = line.split(separator: " ")
      guard words.count > 4, words[2] == "0100007F:\(remote)", words[3] == "01" else { return sum }
      return sum + (words[4].split(separator: ":").last.flatMap { Int($0, radix: 16) } ?? 0)
    }
  }
#endif
