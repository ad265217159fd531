import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

#if os(Linux)
  /// Small requests whose head and body are sent with one call.
  @Suite struct DirectTests {
    private static let schemes = ["http", "https"]

    /// A peer, with or without TLS, and a transport that trusts its certificate.
    private struct Line {
      let peer: ScriptedPeer
      let front: TLSFront?
      let certificate: Certificate

      init(_ scheme: String, _ peer: ScriptedPeer) throws {
        self.peer = peer
        certificate = try Certificate()
        front = scheme == "https" ? TLSFront(certificate, to: peer.port) : nil
      }

      func url(_ path: String = "/a") -> HTTPURL { front?.url(path) ?? peer.url(path) }

      func transport(_ options: SocketTransport.Options = .init()) -> SocketTransport {
        var options = options
        options.caFile = certificate.path
        return SocketTransport(options)
      }
    }

    private func seen(_ peer: ScriptedPeer) -> String { String(decoding: peer.seen.received[0], as: UTF8.self) }

    @Test(arguments: schemes) func theHeadSaysWhatLibcurlsWouldHave(_ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer("201 Made", "ab")])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      var request = HTTPRequest("PUT", line.url("/a%20b?c=d"), ["X-Empty": "", "X-One": "1", "Content-Length": "3"])
      request.headers.add("x-one", "2")
      let source = PatternSource(length: 3)
      for status in [200, 201] {
        let response = try await transport.send(request, body: BlobSlice(source), Exchange())
        #expect(response.status == status)
      }
      let (first, second) = (seen(peer).lines(of: 0), seen(peer).lines(of: 1))
      #expect(first.first == "PUT /a%20b?c=d HTTP/1.1" && second.first == first.first)
      #expect(Set(first.map { $0.lowercased() }) == Set(second.map { $0.lowercased() }), "\(first) and \(second)")
      #expect(Array(peer.seen.received[0].suffix(3)) == source.bytes(count: 3))
    }

    /// Field lines and contents with sizes near the first and the later sizes of the response buffer.
    @Test(arguments: [4000, 4070, 4096, 4100, 9000, 16_200], schemes)
    func anAnswerMayNeedMoreRoom(_ size: Int, _ scheme: String) async throws {
      let (field, text) = (String(repeating: "f", count: size), String(repeating: "c", count: 3 * size))
      let peer = ScriptedPeer([
        .readRequest, answer(), .readRequest, answer("200 OK", text, "X-Long: \(field)\r\n"), .readRequest,
        answer("200 OK", text),
      ])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      #expect(try await transport.get(line.url()).status == 200)
      let response = try await transport.get(line.url())
      #expect(response.headers["X-Long"] == field && response.body == Array(text.utf8))
      #expect(try await transport.get(line.url()).body == Array(text.utf8))
      #expect(peer.seen.received.count == 1)
    }

    @Test(arguments: ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "MKCOL"], schemes)
    func aContentLengthIsSentWhereLibcurlSendsOne(_ method: String, _ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      for _ in 1...2 { _ = try await transport.get(line.url(), method) }
      #expect(peer.seen.received.count == 1)
      #expect(Set(seen(peer).lines(of: 0)) == Set(seen(peer).lines(of: 1)))
    }

    @Test(arguments: schemes) func answersOfEveryFormAreRead(_ scheme: String) async throws {
      let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
      let peer = ScriptedPeer([
        .readRequest, answer(), .readRequest, .send(chunked), .readRequest,
        .send("HTTP/1.1 104 Here\r\nLocation: /u\r\n\r\n"), answer("201 Made", "abcde"), .readRequest,
        answer("204 None"),
        .readRequest, .send("HTTP/1.1 200 OK\r\n\r\nabcde"), .close,
      ])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      _ = try await transport.get(line.url())
      let told = Tally()
      for (status, content) in [(200, "abcde"), (201, "abcde"), (204, ""), (200, "abcde")] {
        let response = try await transport.send(
          HTTPRequest("POST", line.url()), body: BlobSlice(PatternSource(length: 10)),
          Exchange(interim: { if $0.headers["Location"] == "/u" { told.add($0.status) } }))
        #expect(response.status == status && response.body == Array(content.utf8))
      }
      #expect(told.value == 104)
      #expect(peer.seen.received.count == 1)
    }

    @Test(arguments: schemes) func aConnectionTheServerGivesUpIsNotUsedAgain(_ scheme: String) async throws {
      let peer = ScriptedPeer([
        .readRequest, answer(), .readRequest, answer("200 OK", "", "Connection: close\r\n"), .discard,
      ])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      for _ in 1...3 { _ = try await transport.get(line.url(), "DELETE") }
      #expect(peer.seen.received.count == 2)
    }

    @Test(arguments: schemes) func anAnswerThatComesBeforeTheBodyIsTakenCounts(_ scheme: String) async throws {
      // The peer reads only the head and closes without reading the body, which resets the connection.
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, answer("413 Too much", "no"), .close])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      _ = try await transport.get(line.url())
      do {
        let response = try await transport.put(line.url(), PatternSource(length: 60_000))
        #expect(response.status == 413)
      } catch {
        // The reset may discard the response; the request is then sent again.
        #expect(error.code == .broken, "\(error)")
      }
    }

    @Test func aWorkerConnectsAnewForAnotherServer() async throws {
      let peers = (0..<2).map { _ in ScriptedPeer([.readRequest, answer(), .readRequest, answer(), .discard]) }
      let transport = SocketTransport(.init(connections: 1))
      for number in [0, 1, 1, 0] { _ = try await transport.get(peers[number].url("/\(number)")) }
      for (number, peer) in peers.enumerated() {
        let heads = peer.seen.received.map { String(decoding: $0, as: UTF8.self) }.joined()
        #expect(heads.contains("GET /\(number) ") && !heads.contains("GET /\(1 - number) "))
      }
    }

    @Test(arguments: schemes) func limitsHoldAndTheErrorNamesThem(_ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, .hold], [.readRequest, answer()])
      let line = try Line(scheme, peer)
      let transport = line.transport(.init(noProgress: .seconds(10), finishing: .milliseconds(200)))
      _ = try await transport.get(line.url())
      let error = await failure { () async throws(TransportError) in
        try await transport.send(
          HTTPRequest("PATCH", line.url()), body: BlobSlice(PatternSource(length: 9)), Exchange())
      }
      #expect(error.code == .timeout && error.message.contains("after 9 bytes were sent"), "\(error)")
      // A connection with an outstanding response is not used again.
      _ = try await transport.get(line.url())
      #expect(peer.seen.received.count == 2)
    }

    @Test(arguments: schemes) func cancellingEndsIt(_ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, .hold])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      _ = try await transport.get(line.url())
      let task = Task { try await transport.get(line.url()) }  // awaited below
      await peer.wait { $0.heads.count == 2 }
      task.cancel()
      await #expect(throws: TransportError.self) { _ = try await task.value }
    }

    @Test(arguments: ["nonsense\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], schemes)
    func aResponseThatIsNotHTTPIsAnError(_ text: String, _ scheme: String) async throws {
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, .send(text), .discard])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      _ = try await transport.get(line.url())
      let error = await failure { () async throws(TransportError) in try await transport.get(line.url()) }
      #expect(error.code == .badResponse && error.message.contains("is not HTTP/1.1"), "\(error)")
    }

    @Test(arguments: schemes) func anAnswerCutInTheMiddleIsBroken(_ scheme: String) async throws {
      let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, .send(cut), .close])
      let line = try Line(scheme, peer)
      let transport = line.transport()
      _ = try await transport.get(line.url())
      let error = await failure { () async throws(TransportError) in try await transport.get(line.url()) }
      #expect(error.code == .broken && error.message.contains("in the middle of the answer"), "\(error)")
    }
  }

  extension String {
    /// The head of request `number` of these, as lines.
    fileprivate func lines(of number: Int) -> [String] {
      let starts = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "MKCOL"]
      var requests: [[String]] = []
      for line in replacing("\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasSuffix(" HTTP/1.1"), let start = starts.first(where: { line.contains($0 + " /") }) {
          requests.append([start + line.drop { $0 != " " }])
        } else if !requests.isEmpty, line.contains(": ") || line.hasSuffix(":") {
          requests[requests.count - 1].append(line.trimmed)
        }
      }
      return requests.indices.contains(number) ? requests[number].map { $0.hasSuffix(":") ? $0 : $0 } : []
    }
  }
#endif
