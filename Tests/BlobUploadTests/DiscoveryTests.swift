import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

@Suite struct DiscoveryTests {
  @Test func ourServerSpeaksTus() async throws {
    let peer = try ServedFolder { $0.maxSize = 12_345 }
    let found = try await UploadDestination.discover(peer.endpoint, named: nil, over: SocketTransport())
    #expect(found.uploadProtocol is Tus)
    #expect(found.limits.total == 12_345)
    #expect(!found.limits.needsLength)
    let error = await Uploader(found, transport: SocketTransport()).failure(of: 12_346)
    #expect(error?.side == .file)
  }

  @Test(arguments: ["200 OK", "204 No Content", "404 Not Found", "405 Method Not Allowed", "501 No"])
  func anyOtherServerIsTakenToTakePut(status: String) async throws {
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")])
    let url = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/"))
    #expect(try await UploadDestination.discover(url, named: nil, over: SocketTransport()).uploadProtocol is PlainPut)
    #expect(String(decoding: peer.seen.received[0], as: UTF8.self).hasPrefix("OPTIONS / "))
    let error = await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(url, named: "tus", over: SocketTransport())
    }
    #expect(error?.side == .destination)
  }

  @Test func tusWithoutCreationWithUploadIsNotTakenUnasked() async throws {
    let script = Script(.status(204, ["Tus-Version": "0.2.2, 1.0.0", "Tus-Extension": "creation"]))
    #expect(try await UploadDestination.discover(host, named: nil, over: script).uploadProtocol is PlainPut)
    let named = try await UploadDestination.discover(host, named: "tus", over: script)
    #expect(named.limits.firstPart == 0)
    #expect(named.limits.needsLength)
    #expect(script.requests.allSatisfy { $0.headers["Tus-Resumable"] == nil })
  }

  @Test(arguments: [nil, "put", "tus", "resumable", "dav"])
  func aServerOfAnotherNameIsReportedBeforeAnythingIsSent(_ named: String?) async {
    let script = Script(.status(421, text: "this server is not 'nas'; start it with --host nas"))
    let error = await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(host, named: named, asksForNames: true, over: script)
    }
    #expect(error?.side == .destination && error?.message.contains("--host nas") == true, "\(error as Any)")
    #expect(script.methods == ["OPTIONS"])
  }

  /// nginx and Apache answer a request without TLS at a port for TLS. The command line then names the scheme.
  @Test(
    arguments: [
      "The plain HTTP request was sent to HTTPS port",
      "Reason: You're speaking plain HTTP to an SSL-enabled server port.",
    ], [nil, "dav"])
  func aPortForTLSRefusesEverything(_ text: String, _ named: String?) async {
    let peer = HTTPPeer { _ in .init(400, ["Content-Type": "text/html"], Array("<html>\(text)</html>".utf8)) }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      try await UploadDestination.discover(peer.url, named: named, over: SocketTransport())
    }
    #expect(error?.side == .destination && error?.status == 400, "\(error as Any)")
  }

  @Test(arguments: [401, 503]) func aRefusalIsTheDestinations(_ status: Int) async {
    let script = Script(.status(status))
    let error = await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(host, named: nil, over: script)
    }
    #expect(error?.side == .destination)
    #expect(script.requests.count == (status == 401 ? 1 : 3))
  }

  @Test(arguments: [nil, "dav", "resumable", "tus"], [429, 503])
  func discoveryAsksABusyServerAgainAfterItsRetryAfter(_ named: String?, _ status: Int) async throws {
    let script = Script { number, _ throws(TransportError) in
      if number == 0 { return .status(status, ["Retry-After": "1"]) }
      return .status(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload", "DAV": "1"])
    }
    let begin = ContinuousClock.now
    let waits = Mutex<[Duration]>([])
    let found = try await UploadDestination.discover(
      host, named: named, retrying: { error, wait in waits.withLock { $0 += error.status == status ? [wait] : [] } },
      over: script)
    #expect(found.uploadProtocol.name == named ?? "tus")
    #expect(waits.withLock { $0 } == [.seconds(1)])
    #expect(script.methods == ["OPTIONS", "OPTIONS"])
    #expect(ContinuousClock.now - begin >= .seconds(1))
  }

  /// The transport waits a long time before it reports that no response arrived.
  @Test(arguments: [(Duration.seconds(10), 3), (.zero, 1)])
  func aServerThatLetsWaitIsNotAskedAgain(_ limit: Duration, _ count: Int) async {
    var asked = 0
    let error = await #expect(throws: UploadError.self) {
      try await UploadDestination.patiently(within: limit) { () async throws(UploadError) in
        asked += 1
        throw UploadError(TransportError(.timeout, "OPTIONS http://host/: no answer"))
      }
    }
    #expect(asked == count && error?.side == .destination)
  }

  /// As with `--retries 4`: the number counts for the first request too, also where nothing is reached.
  @Test func aNumberOfRetriesIsKeptByTheFirstRequest() async {
    for code in [TransportError.Code.connect, .broken] {
      var asked = 0
      let retry = RetryPolicy(retries: 4, first: .milliseconds(1))
      let error = await #expect(throws: UploadError.self) {
        try await UploadDestination.patiently(within: .zero, retry: retry) { () async throws(UploadError) in
          asked += 1
          throw UploadError(TransportError(code, "OPTIONS http://host/: nothing there"))
        }
      }
      #expect(asked == 5 && error?.message.contains("gave up after 5 failures") == true)
    }
  }

  @Test func anUnknownNameIsRefused() async {
    await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(host, named: "gopher", over: Script(.status(200)))
    }
  }
}
