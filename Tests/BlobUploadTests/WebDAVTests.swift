import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@Suite struct WebDAVTests {
  private func uploader(_ peer: DavPeer, at path: String = "", _ dialect: WebDAV = WebDAV(), retries: Int = 3)
    -> Uploader
  {
    let endpoint = peer.endpoint.resolve(path)!
    var uploader = Uploader(
      UploadDestination(endpoint: endpoint, dialect: dialect, limits: PartLimits(firstPart: 4 << 20)),
      transport: CurlTransport(), retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    return uploader
  }

  @Test func foldersThatAreMissingAreMadeOnce() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let uploader = uploader(peer)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<12 {
        group.addTask {
          let name = BytePath("2026/Mäi \(number % 3)/\(number).jpg")
          _ = try await uploader.upload(PatternSource(length: 100), as: name)
        }
      }
      try await group.waitForAll()
    }
    #expect(peer.names().count == 12 && peer.unfinished() == 0)
    let made = peer.requests.filter { $0.hasPrefix("MKCOL") }
    // One of the three is asked for before the one above it is known to be missing.
    #expect(made.count == 5 && Set(made).count == 4, "\(made)")
    #expect(made.contains("MKCOL /2026/M%C3%A4i%201/"))
  }

  @Test func endpointThatIsMissingIsMade() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer, at: "backup/phone/").upload(PatternSource(length: 100), as: "a.jpg")
    #expect(peer.names() == ["backup/phone/a.jpg"])
  }

  @Test func everyUploadIsPutAsideLookedAtAndMoved() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a.jpg")
    #expect(peer.requests.map { $0.prefix { $0 != " " } } == ["PUT", "HEAD", "MOVE"])
    #expect(peer.requests.first?.contains("/.fullbore-") == true)
  }

  @Test(arguments: [405, 501])
  func serverWithoutMoveGetsItStraightIfTheNameIsFree(_ status: Int) async throws {
    let peer = DavPeer { $0.method == "MOVE" ? .init(status) : nil }
    defer { peer.stop() }
    let uploader = uploader(peer)
    for name in ["a", "b"] as [BytePath] { _ = try await uploader.upload(PatternSource(length: 100), as: name) }
    #expect(Set(peer.names()) == ["a", "b"] && peer.unfinished() == 0)
    #expect(peer.requests.filter { $0.hasPrefix("MOVE") }.count == 1, "it is asked once")
    _ = try await uploader.upload(PatternSource(length: 100), as: "a")
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader.upload(PatternSource(length: 100, seed: 9), as: "a")
    }
    #expect(error?.side == .file && peer.contents(of: "a") == PatternSource(length: 100).bytes(count: 100))
  }

  @Test func lockedIsTriedAgain() async throws {
    let locks = Monitor(3)
    let peer = DavPeer { request in
      guard request.method == "MOVE" else { return nil }
      return locks.update { left in
        left -= 1
        return left >= 0 ? HTTPPeer.Reply(423) : nil
      }
    }
    defer { peer.stop() }
    _ = try await uploader(peer, retries: 5).upload(PatternSource(length: 100), as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0)
  }

  @Test(arguments: ["PUT", "MKCOL", "MOVE"])
  func fullServerIsSaidAndNotTriedAgain(_ method: String) async throws {
    let peer = DavPeer { $0.method == method ? .init(507) : nil }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "x/a")
    }
    #expect(error?.side == .destination && error?.recovery == .giveUp && error?.message.contains("no room") == true)
    #expect(peer.requests.filter { $0.hasPrefix(method) }.count == 1)
  }

  @Test func sizeThatIsWrongIsNeverPublished() async throws {
    let peer = DavPeer { $0.method == "HEAD" ? .init(200, ["ETag": "\"x\""], [1, 2, 3]) : nil }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    }
    #expect(error?.message.contains("has 3 bytes, and was sent 100") == true)
    #expect(peer.names() == [])
  }

  @Test func someoneElsesBytesAreNeverPublished() async throws {
    let peer = DavPeer { request in
      request.method == "HEAD" ? .init(200, ["ETag": "\"someone else's\""], [UInt8](repeating: 0, count: 100)) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    }
    #expect(error?.message.contains("ETag") == true && peer.names() == [])
  }

  /// As some do that take the `Destination` for a URL with a query once more.
  @Test func nameThatIsCutByTheServerIsFoundOut() async throws {
    let peer = DavPeer { request in
      let end = request.headers["Destination"]?.contains("%3F") == true
      return request.method == "MOVE" && end ? .init(201) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: BytePath("what?.jpg"))
    }
    #expect(error?.recovery == .giveUp && error?.message.contains("another name") == true, "\(error as Any)")
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: BytePath("so;what#.jpg"))
    // Names without such characters cost no further request.
    let before = peer.requests.count
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: BytePath("Mäi.jpg"))
    #expect(peer.requests.count == before + 3, "\(peer.requests)")
  }

  @Test func nameThatIsTakenCostsALargeFileNothing() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 64 << 20), as: "a")
    }
    #expect(error?.side == .file && error?.message.contains("another file of 100 bytes") == true)
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1)
  }

  /// The answer to MOVE is lost, and then the connection on which it is compared.
  @Test func comparisonThatIsCutIsMadeAgain() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let cuts = Monitor(3)
    let transport = FaultyTransport(CurlTransport()) { number, request in
      if request.method == "MOVE", number < 3 { return .loseAnswer }
      guard request.method == "GET" else { return .none }
      return cuts.update { left in
        left -= 1
        return left >= 0 ? .before(.broken) : .none
      }
    }
    var uploader = uploader(peer, retries: 8)
    uploader.transport = transport
    _ = try await uploader.upload(PatternSource(length: 100), as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0)
  }

  @Test func serverThatOffersItIsFoundOut() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let found = try await UploadDestination.discover(peer.endpoint, named: nil, over: CurlTransport())
    #expect(found.dialect.name == "dav")
    let refused = Script(.status(401))
    await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(host, named: "dav", over: refused)
    }
    let nginx = try await UploadDestination.discover(host, named: "dav", over: Script(.status(405)))
    #expect(nginx.dialect.name == "dav")
  }

  @Test func partSizeDoesNotCutIt() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let destination = try await UploadDestination.discover(peer.endpoint, named: "dav", over: CurlTransport())
    let uploader = Uploader(destination, transport: CurlTransport(), partSize: 1 << 20)
    _ = try await uploader.upload(PatternSource(length: 6 << 20), as: "film")
    #expect(peer.contents(of: "film")?.count == 6 << 20)
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1)
  }
}
