import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

@testable import BlobUpload

@Suite struct FormPostTests {
  private func uploader(
    _ form: FormPost, to endpoint: HTTPURL, headers: HTTPHeaders = [:], retries: Int = 2,
    timeout: Duration = .seconds(60)
  ) -> Uploader {
    var uploader = Uploader(
      UploadDestination(
        endpoint: endpoint, uploadProtocol: form, limits: PartLimits(firstPart: .max), headers: headers),
      transport: SocketTransport(SocketTransport.Options(noProgress: timeout, finishing: timeout)),
      retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    return uploader
  }

  @Test func fieldsComeBeforeTheFileInTheirOrder() async throws {
    let peer = FormPeer()
    defer { peer.stop() }
    let form = FormPost(
      field: "assetData",
      fields: [
        FormField(name: "title", value: "Trip \"ü\""), FormField(name: "name", value: "<{name}>"),
        FormField(name: "where", value: "{path}"),
      ])
    let pattern = PatternSource(length: 200_000)
    _ = try await uploader(form, to: peer.endpoint).upload(
      pattern, as: "2026/May/a \"b\".jpg", contentType: "image/jpeg")
    let parts = try #require(peer.forms.first)
    #expect(parts.map(\.name) == ["title", "name", "where", "assetData"])
    #expect(parts[0].bytes == Array("Trip \"ü\"".utf8))
    #expect(parts[1].bytes == Array("<a \"b\".jpg>".utf8) && parts[2].bytes == Array("2026/May/a \"b\".jpg".utf8))
    #expect(parts[3].fileName == Array("a \"b\".jpg".utf8) && parts[3].contentType == "image/jpeg")
    #expect(parts[3].bytes == pattern.bytes(count: 200_000))
  }

  @Test func progressCountsTheFileAndNotTheForm() async throws {
    let peer = FormPeer()
    defer { peer.stop() }
    for length: Int64 in [0, 1000, 500_000] {
      let progress = UploadProgress()
      let uploader = uploader(FormPost(), to: peer.endpoint)
      let pattern = PatternSource(length: length)
      let target = uploader.destination.target(BytePath("\(length)"), length: length)
      let events = RecordedEvents()
      let context = UploadContext(
        transport: uploader.transport, endpoint: peer.endpoint, traits: UploadTraits(), events: events)
      let part = Part(number: 1, start: 0, length: length, isLast: true)
      _ = try await FormPost().create(target, first: FirstPart(part, BlobSlice(pattern)), context)
      #expect(events.bytes == length)
      _ = try await uploader.upload(pattern, pattern.info, to: target, progress: progress)
      #expect(progress.sent == length)
    }
  }

  @Test func statusThatIsExpectedIsTheAnswer() async throws {
    let answers: [(Int, Int?, Bool)] = [
      (303, 303, true), (302, 302, true), (200, nil, true), (201, 200, false), (303, nil, false), (404, 200, false),
    ]
    for (status, expected, isRight) in answers {
      let peer = ScriptedPeer([
        .readRequest, .send("HTTP/1.1 \(status) X\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n"), .close,
      ])
      let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
      let uploader = uploader(FormPost(expectedStatus: expected), to: endpoint, retries: 0)
      do {
        let result = try await uploader.upload(PatternSource(length: 1000), as: "a")
        // A redirect leads to a page that need not be the file.
        let place = status < 300 ? "http://127.0.0.1:\(peer.port)/done" : nil
        #expect(isRight && result?.location == place, "\(status)")
      } catch {
        #expect(!isRight && error.recovery == .giveUp && error.status == status, "\(status): \(error)")
      }
      #expect(peer.seen.heads.first?.hasPrefix("POST /upload HTTP/1.1\r\n") == true)
    }
  }

  /// Answers to a form, of which the receiver closes the connection too early, sends what is no chunk, or sends nothing
  /// more; or which are longer than what is kept.
  private static let cutAnswers: [[ScriptedPeer.Step]] = [
    [.send("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + String(repeating: "x", count: 3_000_000)), .close],
    [.send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"), .close],
    [.send("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"), .close],
    [.send("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"), .pause(3000), .close],
  ]

  /// Sent again, the receiver would have the file twice. The status says that it has it.
  @Test(arguments: cutAnswers) func aFormWhoseAnswerIsCutIsSentOnce(_ answer: [ScriptedPeer.Step]) async throws {
    for reply in [nil, JSONPath("$.url")] {
      let peer = ScriptedPeer(Array(repeating: [.readRequest] + answer, count: 3).flatMap { $0 })
      let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
      let uploader = uploader(FormPost(reply: reply), to: endpoint, timeout: .seconds(1))
      do throws(UploadError) {
        _ = try await uploader.upload(PatternSource(length: 1000), as: "a")
        #expect(reply == nil)
      } catch {
        #expect(reply != nil && error.message.contains("the file may be there"), "\(error)")
      }
      #expect(peer.seen.heads.count == 1)
    }
  }

  /// A cut answer over a connection that was used before may be one to an earlier form. So a form of some size does not share
  /// its connection, and a small one does.
  @Test(arguments: [(2 << 20, 2), (1000, 3)] as [(Int64, Int)])
  func aLargeFormIsTheFirstOfItsConnection(_ length: Int64, _ forms: Int) async throws {
    let taken = ScriptedPeer.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    let cut = ScriptedPeer.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    let peer = ScriptedPeer(
      [.readRequest, taken, .readRequest, cut, .close], [.readRequest, cut, .close])
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
    let uploader = uploader(FormPost(), to: endpoint)
    _ = try await uploader.upload(PatternSource(length: length), as: "a")
    #expect(peer.seen.received.count == 1)
    _ = try await uploader.upload(PatternSource(length: length, seed: 1), as: "b")
    #expect(peer.seen.heads.count == forms, "\(peer.seen.heads)")
    #expect(peer.seen.received.count == 2)
  }

  /// The rest of the form is sent after the redirect has come, and says nothing about whether the receiver took it.
  @Test func anExpectedStatusBeforeTheEndOfTheFormDoesNotCount() async throws {
    let early = "HTTP/1.1 303 X\r\nLocation: /done\r\nContent-Length: 200\r\n\r\n"
    let peer = ScriptedPeer(
      Array(repeating: [.readHead, .read(100_000), .send(early), .pause(500), .discard], count: 3).flatMap { $0 })
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
    let uploader = uploader(FormPost(expectedStatus: 303), to: endpoint, retries: 0, timeout: .seconds(1))
    await #expect(throws: UploadError.self) {
      try await uploader.upload(PatternSource(length: 50 << 20), as: "a")
    }
  }

  @Test func aPageAfterTheFormIsExplained() async throws {
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 303 X\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n")])
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
    let error = await #expect(throws: UploadError.self) {
      try await uploader(FormPost(), to: endpoint, retries: 0).upload(PatternSource(length: 1000), as: "a")
    }
    #expect(error?.message.contains("--expect 303") == true, "\(error as Any)")
  }

  @Test func replySaysWhereTheFileIs() async throws {
    let body = #"{"files": [{"url": "https://cdn.example/a", "id": 7, "ok": true, "x": null}]}"#
    let paths = [
      "$.files[0].url": "https://cdn.example/a", "files[0].id": "7", "$['files'][0].ok": "true", "files[0].x": nil,
      "files[1].url": nil, "$.nothing": nil, "files": nil,
    ]
    for (path, wanted) in paths {
      let transport = Script(.status(200, text: body))
      let uploader = BlobUploadTests.uploader(
        FormPost(reply: JSONPath(path)), transport, limits: PartLimits(firstPart: .max))
      do {
        let result = try await uploader.upload(PatternSource(length: 10), as: "a")
        #expect(wanted != nil && result?.location == wanted)
      } catch {
        #expect(wanted == nil && error.recovery == .giveUp && error.message.contains("nothing at \(path)"))
      }
    }
  }

  @Test(arguments: ["", "a..b", "$..a", "a[*]", "a[-1]", "a[0", "a['b]", "a]", "$x"])
  func textThatIsNoJSONPathIsRefused(_ text: String) { #expect(JSONPath(text) == nil) }

  @Test func credentialsGoNowhereElse() async throws {
    let other = ScriptedPeer([.discard])
    let peer = ScriptedPeer([
      .readRequest, .send("HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:\(other.port)/\r\nContent-Length: 0\r\n\r\n"),
    ])
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/upload"))
    let uploader = uploader(FormPost(), to: endpoint, headers: ["Authorization": "Bearer secret"], retries: 0)
    let error = await uploader.failure()
    #expect(error?.side == .destination && error?.message.contains("not followed") == true)
    #expect(other.seen.heads.isEmpty)
  }

  /// The location in the reply is stored, so it must contain neither a credential nor a field of the form.
  @Test(arguments: ["s3krT0ken/", "s3krT0ken%2F", "czNrclQwa2Vu", "fieldsecret"])
  func aReplyThatRepeatsASecretIsNotKept(_ spelling: String) async throws {
    let answer = HTTPResponse(
      head: HTTPHead(status: 200, headers: [:]), body: Array("{\"url\": \"/in/\(spelling)/a\"}".utf8))
    let form = FormPost(fields: [FormField(name: "key", value: "fieldsecret")], reply: JSONPath("url"))
    let uploader = BlobUploadTests.uploader(
      form, Script(answer), headers: ["Authorization": "Bearer s3krT0ken/"], limits: PartLimits(firstPart: .max))
    let result = try await uploader.upload(PatternSource(length: 10), as: "a")
    #expect(result != nil && result?.location == nil)
  }

  /// A form contains no folders.
  @Test func fileIsReadBackWhereTheAnswerOrItsNameSaysThatItIs() async throws {
    let source = PatternSource(length: 10)
    let bytes = HTTPResponse(head: HTTPHead(status: 200, headers: [:]), body: [])
    let places: [(String?, String)] = [
      (nil, "http://media.example/in/a.mov"), ("/files/7", "http://media.example/files/7"),
    ]
    for (location, place) in places {
      let transport = Script(bytes)
      let uploader = BlobUploadTests.uploader(FormPost(), transport)
      let target = uploader.destination.target("2026/a.mov", length: 10)
      // The script returns no bytes.
      await #expect(throws: UploadError.self) {
        try await uploader.verify(source, source.info, at: target, location: location)
      }
      #expect(transport.requests.map(\.url.text) == [place])
    }
  }

  @Test func verifyingAFormUploadWithoutAReadableURLEndsThePush() async throws {
    let source = PatternSource(length: 10)
    let transport = Script(.status(404))
    let uploader = BlobUploadTests.uploader(FormPost(), transport)
    let target = uploader.destination.target("2026/a.mov", length: 10)
    for (location, count) in [(nil, 1), ("http://cdn.example/a.mov", 1)] as [(String?, Int)] {
      let error = await #expect(throws: UploadError.self) {
        try await uploader.verify(source, source.info, at: target, location: location)
      }
      #expect(error?.side == .destination && error?.message.contains("cannot be read back") == true, "\(error as Any)")
      #expect(transport.requests.count == count)
    }
  }

  @Test func fileIsAskedForWhereTheAnswerSaidThatItIs() async throws {
    let transport = Script(.status(200, ["Content-Length": "1000"]))
    let uploader = BlobUploadTests.uploader(FormPost(), transport)
    let target = uploader.destination.target("a", length: 1000)
    #expect(try await uploader.isThere(target, location: "/files/7"))
    #expect(transport.requests.first?.url.text == "http://media.example/files/7")
    for nowhere in [nil, "https://cdn.example/a"] {
      let error = await #expect(throws: UploadError.self) { () async throws in
        _ = try await uploader.isThere(target, location: nowhere)
      }
      #expect(error?.recovery == .giveUp)
    }
  }
}
