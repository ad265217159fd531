import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// Slow clients: a byte from time to time does not keep a connection open.
struct SlowClientTests {
  /// Sends a byte ten times per second until the server closes the connection. Returns the time that this took; nil:
  /// the server did not close.
  private func drip(_ client: RawHTTPClient, _ byte: UInt8 = UInt8(ascii: "a")) -> Duration? {
    let begin = ContinuousClock.now
    while ContinuousClock.now - begin < .seconds(20) {
      do { try client.send([byte]) } catch { return ContinuousClock.now - begin }
      usleep(100_000)
    }
    return nil
  }

  @Test func aHeadThatNeverEndsIsClosed() throws {
    let server = try TestServer { $0.headTimeout = .seconds(1) }
    for start in ["", "GET /", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "] {
      let client = try server.client()
      try client.send(Array(start.utf8))
      let time = try #require(drip(client), "after '\(start)'")
      #expect(time > .milliseconds(500) && time < .seconds(15), "after '\(start)'")
    }
  }

  @Test func aSecondHeadHasItsTimeToo() throws {
    let server = try TestServer {
      $0.idleTimeout = .seconds(4)
      $0.headTimeout = .seconds(1)
    }
    let client = try server.client()
    #expect(try client.ask("GET", "/x").status == 404)
    usleep(1_500_000)
    #expect(try client.ask("GET", "/x").status == 404, "silence between requests does not count")
    let time = try #require(drip(client))
    #expect(time > .milliseconds(500) && time < .seconds(15), "it has the time of a first head, from its first byte on")
  }

  @Test func aBodyOfAByteNowAndThenIsClosed() throws {
    let server = try TestServer { $0.idleTimeout = .seconds(1) }
    let client = try server.client()
    try client.head("PUT", "/x", [("Content-Length", "1000000")])
    #expect(drip(client) != nil)
    #expect(try eventually { server.folder.kept.isEmpty })
    // Bytes that a resumable upload has received are kept.
    let upload = try server.create("y", length: 1_000_000)
    let patch = try server.beginPatch(upload, at: 0, length: 1_000_000, pattern(5000))
    #expect(drip(patch) != nil)
    #expect(try server.offset(upload) > 5000)
  }

  @Test func anAnswerThatNobodyReadsIsClosed() throws {
    let server = try TestServer { $0.idleTimeout = .seconds(1) }
    server.folder.write("big", [1])
    #expect(server.folder.extend("big", to: 64 << 20))
    let client = try server.client()
    try client.head("GET", "/big")
    #expect(try eventually { server.folder.isOpen("big") })
    // The client reads a few bytes from time to time.
    let begin = ContinuousClock.now
    while server.folder.isOpen("big"), ContinuousClock.now - begin < .seconds(20) {
      client.readSome(100)
      usleep(100_000)
    }
    #expect(!server.folder.isOpen("big"))
  }

  @Test func aClientThatMovesEnoughIsNotClosed() throws {
    let server = try TestServer { $0.idleTimeout = .seconds(3) }
    let client = try server.client()
    let bytes = pattern(20_000)
    try client.head("PUT", "/x", [("Content-Length", "\(bytes.count)")])
    for start in stride(from: 0, to: bytes.count, by: 500) {
      try client.send(Array(bytes[start..<start + 500]))
      usleep(100_000)
    }
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  /// Waking up for each packet of a slow link would cost more than receiving it.
  @Test func aLargeBodyIsReadInLargePieces() throws {
    let server = try TestServer()
    let bytes = pattern(1_000_000)
    let upload = try server.create("x", length: 2_000_000)
    let patch = try server.beginPatch(upload, at: 0, length: 2_000_000, Array(bytes[..<5000]))
    // Most of a second, after which the server knows how the bytes come; then another in which it waits for many.
    var sizes: Set<Int64> = []
    let begin = ContinuousClock.now
    for start in stride(from: 5000, to: 155_000, by: 1000) {
      try patch.send(Array(bytes[start..<start + 1000]))
      usleep(10_000)
      if start >= 80_000 { sizes.insert(server.folder.sizeOfKept) }
    }
    // On a machine that is busy with other work the bytes come slowly, and the server then rightly takes each piece.
    let isFast = ContinuousClock.now - begin < .seconds(3)
    if !isFast { print("aLargeBodyIsReadInLargePieces: the machine is too slow to see how pieces are read") }
    #expect(sizes.count <= 12 || !isFast, "what has arrived is taken once a second, or when it is much")
    try patch.send(Array(bytes[155_000..<230_000]))
    #expect(try eventually { server.folder.sizeOfKept >= 200_000 })
    // The connection ends with few bytes after those.
    try patch.send(Array(bytes[230_000..<237_000]))
    patch.finishSending()
    #expect(try eventually { server.folder.sizeOfKept == 237_000 })
    #expect(try server.offset(upload) == 237_000)
  }

  /// A client with a small send buffer sends nothing more before its last packet is acknowledged, and the system
  /// acknowledges that at once only if it is read at once.
  @Test func aClientWithASmallBufferIsAsFastAsBefore() throws {
    let server = try TestServer()
    let client = try server.client()
    client.sendsLittleAtATime()
    let bytes = pattern(600_000)
    let begin = ContinuousClock.now
    try client.head("PUT", "/x", [("Content-Length", "\(bytes.count)")])
    for start in stride(from: 0, to: bytes.count, by: 1000) { try client.send(Array(bytes[start..<start + 1000])) }
    #expect(try client.answer().status == 201)
    // 12 s if each packet waits for the timer of its acknowledgement, a second otherwise.
    #expect(ContinuousClock.now - begin < .seconds(6))
    #expect(server.folder.read("x") == bytes)
  }

  /// A browser repeats a request whose connection broke, and reads no response before it has sent the body again.
  @Test func aBodyAtAWrongOffsetIsNotTakenForLong() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 100_000_000)
    let patch = try server.beginPatch(upload, at: 5, length: 99_999_995, [1, 2, 3])
    let time = try #require(drip(patch))
    #expect(time < .seconds(4))
    #expect(try server.offset(upload) == 0)
  }

  @Test func manySlowClientsKeepNobodyElseWaiting() throws {
    let server = try TestServer()
    let slow = try (0..<300).map { number in
      let client = try server.client()
      if number % 2 == 0 {
        try client.send(Array("GET / HTTP/1.1\r\nX: ".utf8))
      } else {
        try client.head("PUT", "/\(number)", [("Content-Length", "100")])
      }
      return client
    }
    let begin = ContinuousClock.now
    for number in 0..<100 {
      for client in slow { try client.send([UInt8(ascii: "a")]) }
      #expect(try server.ask("PUT", "/fast \(number)".replacing(" ", with: "%20"), body: [1]).status == 201)
      if number == 50 { break }
    }
    #expect(ContinuousClock.now - begin < .seconds(10))
  }

  /// The missing bytes can never be sent; the idle timeout is a minute.
  @Test func aFileThatIsShortenedEndsItsAnswer() throws {
    let server = try TestServer { $0.headTimeout = .milliseconds(400) }
    let length = 64 << 20
    server.folder.write("x", [1])
    #expect(server.folder.extend("x", to: Int64(length)))
    let client = try server.client()
    try client.head("GET", "/x")
    #expect(try client.readHead()["Content-Length"] == "\(length)")
    #expect(server.folder.extend("x", to: 1000))
    let start = ContinuousClock.now
    #expect(client.readToEnd().count < length)
    #expect(ContinuousClock.now - start < .seconds(10))
  }
}
