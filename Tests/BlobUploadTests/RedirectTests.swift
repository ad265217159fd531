import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// 307 and 308 are followed within an origin; no request is sent to another origin.
@Suite struct RedirectTests {
  private static let secrets: HTTPHeaders = [
    "Authorization": "Bearer secret", "x-api-key": "secret", "Cookie": "secret",
  ]

  /// Adds a modification time: a server that confirms it need not be queried for the file.
  private static func timed(_ target: UploadTarget) -> UploadTarget {
    var target = target
    target.modified = 1_700_000_000_000_000_000
    return target
  }

  private func redirect(_ status: Int, to location: String) -> HTTPResponse {
    .status(status, ["Location": location])
  }

  @Test(arguments: [307, 308]) func aFileIsSentToWhereItIsWanted(_ status: Int) async {
    let script = Script(redirect(status, to: "/elsewhere/a?key=1"), redirect(status, to: "b"), .status(201))
    let uploader = uploader(PlainPut(), script, headers: Self.secrets)
    uploader.destination.acquaintance.putAnswers.trust(folderOf: HTTPURL("http://media.example/elsewhere/")!)
    #expect(await uploader.failure() == nil)
    #expect(script.methods == ["PUT", "PUT", "PUT"])
    #expect(script.requests.map(\.url.text).last == "http://media.example/elsewhere/b")
    #expect(script.requests.allSatisfy { $0.headers["x-api-key"] == "secret" && $0.headers.list("Cookie").count == 1 })
  }

  /// The body is read from the source again, each time from its first byte.
  @Test func theBodyIsReplayedFromTheSource() async throws {
    let peer = ScriptedPeer(
      [
        .readRequest, answer("307 Over There", "Location: /b\r\n"), .readRequest,
        answer("201 Created", "X-OC-MTime: accepted\r\n"),
      ])
    let one = try await Self.real(peer)
    let source = PatternSource(length: 3_000_000, seed: 5)
    let progress = UploadProgress(totals: UploadTotals())
    _ = try await one.upload(
      source, source.info, to: Self.timed(one.destination.target("a", length: 3_000_000)), progress: progress)
    let bytes = source.bytes(count: 3_000_000)
    let seen = peer.seen
    #expect(seen.heads.map { $0.prefix(7) } == ["PUT /a ", "PUT /b "])
    #expect(seen.received[0] == Array(seen.heads[0].utf8) + bytes + Array(seen.heads[1].utf8) + bytes)
    #expect(progress.sent == 3_000_000 && progress.acknowledged == 3_000_000)
  }

  /// The server responds before it has read the body, and closes the connection.
  @Test func aRedirectThatComesEarlyIsHeard() async throws {
    let peer = ScriptedPeer(
      [.readHead, answer("308 Over There", "Location: /b\r\nConnection: close\r\n"), .close],
      [.readRequest, answer("201 Created", "X-OC-MTime: accepted\r\n")])
    let one = try await Self.real(peer)
    let source = PatternSource(length: 30_000_000, seed: 6)
    let progress = UploadProgress()
    _ = try await one.upload(
      source, source.info, to: Self.timed(one.destination.target("a", length: 30_000_000)), progress: progress)
    #expect(peer.seen.received[1].suffix(30_000_000) == source.bytes(count: 30_000_000)[...])
    #expect(progress.sent == 30_000_000)
  }

  @Test func aTusUploadLivesWhereItWasCreated() async {
    let script = Script(
      redirect(307, to: "/files/"), .status(201, ["Location": "x1", "Upload-Offset": "0"]), redirect(308, to: "/y1"),
      .at(1000))
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "POST", "PATCH", "PATCH"])
    #expect(script.requests[2].url.text == "http://media.example/files/x1")
    #expect(script.requests[3].url.text == "http://media.example/y1")
    #expect(script.requests[3].headers["Upload-Offset"] == "0")
  }

  @Test(arguments: [
    ("http://elsewhere.example/in/a?token=1", "http://elsewhere.example"), ("//elsewhere.example:81/a", "example:81"),
    ("https://media.example/in/a", "https://media.example"), ("http://media.example:8080/a", "example:8080"),
  ])
  func nothingGoesToAnotherOrigin(_ location: String, _ place: String) async {
    for uploadProtocol in [PlainPut(), Tus()] as [any UploadProtocol] {
      for status in [301, 302, 303, 307, 308] {
        let script = Script(redirect(status, to: location))
        let error = await uploader(uploadProtocol, script, headers: Self.secrets).failure()
        #expect(script.requests.count == 1)
        #expect(error?.side == .destination && error?.status == status)
        #expect(error?.message.contains(host.origin) == true && error?.message.contains(place) == true)
        #expect(error?.message.contains("token") == false && error?.message.contains("secret") == false)
      }
    }
  }

  @Test func aWayThatIsNotEncryptedIsSaidToBeSo() async {
    let script = Script(redirect(307, to: "http://media.example/in/a"))
    var one = uploader(PlainPut(), script, headers: Self.secrets)
    one.destination.endpoint = HTTPURL("https://media.example/in/")!
    let error = await one.failure()
    #expect(error?.message.contains("not encrypted") == true)
    #expect(error?.message.contains("http://media.example:80 and not https://media.example:443") == true, "\(error!)")
    #expect(script.requests.count == 1)
  }

  @Test(arguments: [301, 302, 303]) func aPlaceForAGetIsNoneForAFile(_ status: Int) async {
    let script = Script(redirect(status, to: "/other/"))
    let error = await uploader(PlainPut(), script).failure()
    #expect(script.requests.count == 1)
    #expect(error?.message.contains("only 307 and 308 mean that a PUT goes there") == true)
    #expect(error?.message.contains("give it as the destination") == true)
  }

  @Test func aQuestionFollowsAnyRedirectThatKeepsIt() async throws {
    let tus = HTTPResponse.status(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload"])
    let script = Script(redirect(301, to: "/tus/"), tus)
    #expect(try await UploadDestination.discover(host, named: nil, over: script).uploadProtocol is Tus)
    #expect(script.methods == ["OPTIONS", "OPTIONS"])
  }

  @Test func aCircleIsFoundAndALongWayIsNotGone() async {
    let circle = Script(redirect(307, to: "/b"), redirect(307, to: "/in/a.mov"))
    let error = await uploader(PlainPut(), circle).failure()
    #expect(error?.message.contains("circle") == true)
    #expect(circle.requests.count == 2)

    let way = Script { number, _ throws(TransportError) in .status(307, ["Location": "/\(number)"]) }
    let tired = await uploader(PlainPut(), way).failure()
    #expect(tired?.message.contains("after 5 redirects in a row") == true)
    #expect(way.requests.count == 6)
  }

  @Test(arguments: [nil, "", "ftp://media.example/", "http://me:secret@media.example/"])
  func anInvalidRedirectEndsWithAnErrorWithoutSecrets(_ location: String?) async {
    let script = Script(.status(307, location.map { ["Location": $0] } ?? [:]))
    let error = await uploader(PlainPut(), script).failure()
    #expect(error?.status == 307 && script.requests.count <= 2)
    #expect(error?.message.contains("secret") == false, "\(error!)")
  }

  private func answer(_ status: String, _ fields: String = "") -> ScriptedPeer.Step {
    .send("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\(fields)\r\n")
  }

  private static func real(_ peer: ScriptedPeer) async throws -> Uploader {
    let transport = SocketTransport()
    let url = HTTPURL("http://127.0.0.1:\(peer.port)/")!
    return Uploader(
      try await UploadDestination.discover(url, named: "put", over: transport), transport: transport,
      retry: RetryPolicy(retries: 0))
  }
}
