import BlobHTTP
import BlobTesting
import TestSupport
import BlobURLSession
import Blobs
import Foundation
import Testing

/// The bytes on the wire, and the responses.
@Suite(.timeLimit(.minutes(1)))
struct TransportTests {
  private let transport = URLSessionTransport()

  @Test(arguments: [1, 1000, 65_536, 5_000_001] as [Int64])
  func lengthIsExactAndBytesAreRight(length: Int64) async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let (pattern, told) = (PatternSource(length: length), Told())
    let answer = try await transport.send(
      put(to: peer.port), body: BlobSlice(pattern), Exchange(sent: { told.add(Int64($0)) }))
    #expect(answer.status == 200 && answer.body == Array("ok".utf8))
    let seen = peer.seen
    #expect(seen.values("Content-Length") == ["\(length)"])
    #expect(seen.values("Transfer-Encoding") == [] && seen.values("Expect") == [])
    #expect(Array(seen.body()) == pattern.bytes(count: Int(length)))
    #expect(told.sum == length)
  }

  @Test func sliceSendsItsRange() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let pattern = PatternSource(length: 3 << 20)
    _ = try await transport.send(
      put(to: peer.port), body: BlobSlice(pattern, start: 1 << 20, length: 1_234_567), Exchange())
    #expect(peer.seen.values("Content-Length") == ["1234567"])
    #expect(Array(peer.seen.body()) == pattern.bytes(at: 1 << 20, count: 1_234_567))
  }

  @Test func emptyBodyHasLengthZero() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let answer = try await transport.send(put(to: peer.port), body: BlobSlice(PatternSource(length: 0)), Exchange())
    #expect(answer.status == 200)
    #expect(peer.seen.values("Content-Length") == ["0"] && peer.seen.values("Transfer-Encoding") == [])
  }

  @Test func unknownLengthGoesInChunks() async throws {
    let served = try ServedFolder()
    let pattern = PatternSource(length: 3_000_001, access: .sequential, knowsLength: false)
    let answer = try await transport.send(
      HTTPRequest("PUT", served.endpoint.appending(pathBytes: "video".utf8)), body: BlobSlice(pattern), Exchange())
    #expect(answer.isSuccess)
    #expect(served.contents(of: "video") == pattern.bytes(count: 3_000_001))
  }

  /// Foundation encodes the percent signs of a URL that has other characters to encode.
  @Test func aFolderWithAnUmlautIsNotRenamed() async throws {
    let served = try ServedFolder()
    let folder = try #require(HTTPURL(served.endpoint.text + "B\u{fc}cher/"))
    let pattern = PatternSource(length: 100)
    let answer = try await transport.send(
      HTTPRequest("PUT", folder.appending(pathBytes: "a b".utf8)), body: BlobSlice(pattern), Exchange())
    #expect(answer.isSuccess)
    #expect(served.contents(of: "B\u{fc}cher/a b") == pattern.bytes(count: 100))
  }

  @Test(arguments: [301, 302, 303, 307, 308, 401, 403, 404, 500])
  func everyStatusIsAnAnswer(status: Int) async throws {
    let peer = ScriptedPeer([
      .readRequest,
      .send(
        "HTTP/1.1 \(status) No\r\nLocation: /elsewhere\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
          + "X-Mark: seen\r\nContent-Length: 3\r\n\r\nwhy"),
      .close,
    ])
    let answer = try await transport.send(
      put(to: peer.port), body: BlobSlice(PatternSource(length: 100_000)), Exchange())
    #expect(answer.status == status && answer.headers["X-Mark"] == "seen")
    #expect(peer.seen.heads.count == 1)
  }

  @Test func getStreamsItsContent() async throws {
    let served = try ServedFolder()
    let url = served.endpoint.appending(pathBytes: "video".utf8)
    let pattern = PatternSource(length: 3_000_001)
    _ = try await transport.send(HTTPRequest("PUT", url), body: BlobSlice(pattern), Exchange())
    let told = Told()
    let answer = try await transport.send(
      HTTPRequest("GET", url), body: nil, Exchange(received: { told.add(Int64($0.count)) }))
    #expect(answer.status == 200 && answer.body.isEmpty && told.sum == 3_000_001)
  }

  @Test func nobodyListeningIsConnect() async throws {
    let (listener, port) = Loopback.listen()
    Loopback.close(listener)
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await transport.send(put(to: port), body: nil, Exchange())
    }
    #expect(error?.code == .connect)
  }

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
  func answerThatIsCutIsBroken(answer: String) async throws {
    let peer = ScriptedPeer([.readRequest, .send(answer), .close])
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await transport.send(put(to: peer.port), body: nil, Exchange())
    }
    #expect(error?.code == .broken)
  }

  #if os(Linux)
    @Test func exchangesLeaveNoDescriptorsBehind() async throws {
      let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
      func send() async throws {
        let body = BlobSlice(PatternSource(length: 100_000))
        _ = try await transport.send(put(to: peer.port), body: body, Exchange())
      }
      for _ in 0..<10 { try await send() }
      let before = try descriptors()
      for _ in 0..<200 { try await send() }
      // Sessions end slightly later than their exchanges.
      pollUntil { (try? descriptors()).map { $0 <= before + 10 } ?? false }
      let after = try descriptors()
      #expect(after <= before + 10)
    }

    private func descriptors() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
  #endif
}
