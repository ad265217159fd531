import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@Suite(.timeLimit(.minutes(3))) struct RangeSourceTests: RangeReading {
  @Test(arguments: SourceFixture.remote, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  // MARK: Cuts

  /// The proxy cuts the download repeatedly, at any offset.
  @Test(arguments: [[1000, 70_000, 300_000], [1, 100, 200, 200_000, 5]])
  func aCutDownloadContinuesAtItsOffset(_ cuts: [Int]) async throws {
    let pattern = PatternSource(length: 1_000_000)
    let peer = RangePeer(.init(bytes: pattern.bytes(count: 1_000_000)))
    let proxy = ChaosProxy(to: peer.peer.port, .init(cuts.map { .cutDown(after: $0) }))
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport(), retries: 20)
    let bytes = try await read(BlobSlice(source))
    #expect(bytes == pattern.bytes(count: 1_000_000))
    #expect(proxy.counters.faults == cuts.count)
    // Every byte arrived once, except those in the sockets at the cuts.
    #expect(proxy.counters.bytesDown < 2_000_000)
    #expect(peer.seen.filter { $0["If-Range"] == "\"1\"" }.count >= 2)
  }

  @Test func serverThatIsGoneForGoodIsAnError() async throws {
    let peer = RangePeer(.init(bytes: PatternSource(length: 3_000_000).bytes(count: 3_000_000)))
    let proxy = ChaosProxy(to: peer.peer.port, .init(Array(repeating: .cutDown(after: 0), count: 100)))
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport(), retries: 1)
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(error?.code == .io && error?.message.contains("after 2 attempts") == true, "\(error?.message ?? "")")
  }

  @Test func statusesSayWhatIsWrong() async throws {
    let meanings: [(Int, BlobError.Code)] = [
      (404, .notFound), (410, .notFound), (401, .permission), (403, .permission), (500, .io), (503, .io), (400, .io),
    ]
    for (status, code) in meanings {
      let peer = RangePeer(.init(bytes: [])) { _, _ in .init(status) }
      let source = HTTPRangeSource(peer.url, over: SocketTransport(), retries: 1)
      let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
      #expect(error?.code == code && error?.message.contains("\(status)") == true)
    }
  }

  @Test func overloadedServerIsAskedAgain() async throws {
    let peer = RangePeer(.init(bytes: [1, 2, 3])) { number, _ in number < 2 ? .init(503) : nil }
    #expect(try await read(BlobSlice(HTTPRangeSource(peer.url, over: SocketTransport()))) == [1, 2, 3])
  }

  // MARK: Versions

  @Test(arguments: [true, false])
  func fileThatIsReplacedIsNeverMixed(_ keepsLength: Bool) async throws {
    let old = PatternSource(length: 3_000_000, seed: 1).bytes(count: 3_000_000)
    let new = PatternSource(length: 3_000_000, seed: 2).bytes(count: keepsLength ? 3_000_000 : 2_000_000)
    let peer = RangePeer(.init(bytes: old))
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    let info = try await info(source)
    // The file is replaced in the middle, which is detected at the next open.
    _ = try await read(BlobSlice(source, length: 1_000_000, validator: info.validator))
    peer.replace(by: .init(bytes: new, headers: ["ETag": "\"2\""]))
    let error = await #expect(throws: BlobError.self) { () async throws in
      _ = try await read(BlobSlice(source, start: 1_000_000, validator: info.validator))
    }
    #expect(error?.code == .changed)
    #expect(try await self.info(source).validator != info.validator)
  }

  @Test func fileThatIsReplacedWhileItIsCutIsChanged() async throws {
    let old = PatternSource(length: 3_000_000, seed: 1).bytes(count: 3_000_000)
    let holder = Monitor<RangePeer?>(nil)
    let peer = RangePeer(.init(bytes: old)) { number, _ in
      // The first requests are the probe and the range that is cut; then the file is replaced.
      if number == 2 { holder.update { $0 }?.replace(by: .init(bytes: old.reversed(), headers: ["ETag": "\"2\""])) }
      return nil
    }
    holder.update { $0 = peer }
    defer { holder.update { $0 = nil } }
    let proxy = ChaosProxy(to: peer.peer.port, .init([.cutDown(after: 1_500_000)]))
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport())
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(error?.code == .changed && proxy.counters.faults == 1)
  }

  /// The server changes the file while it is sent: before the last byte is returned, the source asks the server again.
  @Test func fileThatIsReplacedAtTheEndIsChanged() async throws {
    let peer = RangePeer(.init(bytes: [UInt8](repeating: 1, count: 1000)))
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    let error = await #expect(throws: BlobError.self) { () async throws in
      try await rangeThreads.run { () throws in
        let reader = try source.open(at: 0, Cancellation())
        var count = 0
        while count < 1000 {
          count += try withUnsafeTemporaryAllocation(byteCount: 1000, alignment: 1) { try reader.read(into: $0) }
        }
        peer.replace(by: .init(bytes: [2], headers: ["ETag": "\"2\""]))
        try reader.finish()
      }
    }
    #expect(error?.code == .changed)
  }

  @Test func onlyStrongValidatorsAreTrusted() async throws {
    let old = "Sat, 01 Jan 2022 00:00:00 GMT"
    let cases: [(HTTPHeaders, Bool)] = [
      (["ETag": "\"a\""], true), (["ETag": "W/\"a\""], false), (["ETag": "a"], false), ([:], false),
      (["Last-Modified": old, "Date": "Sat, 01 Jan 2022 00:01:00 GMT"], true),
      (["Last-Modified": old, "Date": "Sat, 01 Jan 2022 00:00:59 GMT"], false), (["Last-Modified": old], false),
      (["ETag": "W/\"a\"", "Last-Modified": old, "Date": "Sat, 01 Jan 2022 00:01:00 GMT"], true),
      (["ETag": "W/\"a\"", "Last-Modified": old, "Date": "Sat, 01 Jan 2022 00:00:59 GMT"], false),
    ]
    for (headers, isStrong) in cases {
      let peer = RangePeer(.init(bytes: [1, 2, 3], headers: headers))
      let source = HTTPRangeSource(peer.url, over: SocketTransport())
      let info = try await info(source)
      #expect((info.validator != nil) == isStrong, "\(headers)")
      #expect(source.access == (isStrong ? .random : .sequential), "\(headers)")
      #expect(info.length == 3)
    }
  }

  // MARK: Servers without ranges

  @Test func serverWithoutRangesIsReadOnce() async throws {
    let pattern = PatternSource(length: 2_000_000)
    let peer = RangePeer(.init(bytes: pattern.bytes(count: 2_000_000), givesRanges: false))
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    #expect(try await info(source).length == 2_000_000)
    #expect(try await read(BlobSlice(source)) == pattern.bytes(count: 2_000_000))
    #expect(peer.seen.count == 1, "the question was the download")
    let again = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(again?.code == .outOfRange)
  }

  @Test func cutOfAServerWithoutRangesIsAnError() async throws {
    let peer = RangePeer(.init(bytes: [UInt8](repeating: 1, count: 2_000_000), givesRanges: false))
    let proxy = ChaosProxy(to: peer.peer.port, .init([.cutDown(after: 1_000_000)]))
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport())
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(error?.code == .invalidated, "\(error as Any)")
    #expect(error?.message.contains("of 2000000, and the rest alone cannot be asked for") == true, "\(error as Any)")
    #expect(error?.message.contains("bytes were sent") == false, "\(error as Any)")
    // Another download starts with the first byte.
    #expect(try await read(BlobSlice(source)) == [UInt8](repeating: 1, count: 2_000_000))
  }

  // MARK: Redirects

  @Test func redirectsAreFollowedWithoutCredentials() async throws {
    let peer = RangePeer(.init(bytes: [1, 2, 3]))
    let gate = RangePeer(.init(bytes: [])) { [url = peer.url] _, request in
      request.path == "/films/a.mov"
        ? .init(302, ["Location": "/there"]) : .init(307, ["Location": url.text])
    }
    let source = HTTPRangeSource(gate.url, over: SocketTransport(), headers: ["Authorization": "Bearer secret"])
    #expect(try await read(BlobSlice(source)) == [1, 2, 3])
    #expect(gate.seen.allSatisfy { $0["Authorization"] == "Bearer secret" })
    #expect(!peer.seen.isEmpty && peer.seen.allSatisfy { $0["Authorization"] == nil })
  }

  @Test func redirectsEndSomewhere() async throws {
    let peer = RangePeer(.init(bytes: [])) { _, _ in .init(302, ["Location": "/films/a.mov"]) }
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(error?.code == .io && error?.message.contains("redirects in a row") == true)
    #expect(peer.seen.count == 6)
  }

  // MARK: Bounds

  /// If nobody reads from a reader, the server cannot send without limit.
  @Test func readAheadIsBounded() async throws {
    let peer = RangePeer(.init(bytes: [UInt8](repeating: 7, count: 64 << 20)))
    let proxy = ChaosProxy(to: peer.peer.port)
    let source = HTTPRangeSource(
      HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport(), readAhead: 64 << 10)
    let before = try await rangeThreads.run { () throws -> Int64 in
      let reader = try source.open(at: 0, Cancellation())
      _ = try withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) { try reader.read(into: $0) }
      var (last, calm) = (proxy.counters.bytesDown, 0)
      // Waits until the byte count is stable.
      while calm < 20 {
        pauseThread(milliseconds: 10)
        let now = proxy.counters.bytesDown
        calm = now == last ? calm + 1 : 0
        last = now
      }
      return last
    }
    // The capacity of the pipe, and of the sockets on both sides of the proxy.
    #expect(before < 16 << 20, "\(before) bytes were read ahead")
  }
}

extension SourceFixture {
  fileprivate static let remote = [0, 1, 5000, 300_000].flatMap { length -> [SourceFixture] in
    let pattern = PatternSource(length: Int64(length), seed: 1)
    let bytes = pattern.bytes(count: length)
    return [
      SourceFixture("\(length) bytes that we serve", like: bytes, stalled: { silent() }) {
        let served = try ServedFolder()
        let url = served.endpoint.appending(pathBytes: "a.mov".utf8)
        try put(pattern, at: url)
        return Remote(HTTPRangeSource(url, over: transport), of: served)
      },
      SourceFixture("\(length) bytes of another server", like: bytes, stalled: { silent() }) {
        let peer = RangePeer(.init(bytes: bytes))
        return Remote(HTTPRangeSource(peer.url, over: transport), of: peer)
      },
    ]
      + (length == 0
        ? []
        : [
          SourceFixture(
            "\(length) bytes of a server without ranges", like: bytes, access: .sequential, stalled: { silent() }
          ) {
            let peer = RangePeer(.init(bytes: bytes, givesRanges: false))
            let source = HTTPRangeSource(peer.url, over: transport)
            _ = try source.info(Cancellation())
            return Remote(source, of: peer)
          }
        ])
  }

  private static let transport = SocketTransport()

  private static func silent() -> any BlobSource {
    let peer = ScriptedPeer([.readRequest, .hold])
    return Remote(HTTPRangeSource(peer.url(), over: transport), of: peer)
  }

  private static func put(_ pattern: PatternSource, at url: HTTPURL) throws {
    let done = Monitor<Result<HTTPResponse, TransportError>?>(nil)
    // The check waits for this task.
    Task {
      do throws(TransportError) {
        let response = try await transport.send(HTTPRequest("PUT", url), body: BlobSlice(pattern), Exchange())
        done.update { $0 = .success(response) }
      } catch {
        done.update { $0 = .failure(error) }
      }
    }
    let answer = try done.wait { $0 }.get()
    if !answer.isSuccess { throw CheckFailure("the file to be served was refused: \(answer.status)") }
  }
}

/// A source that owns its server.
struct Remote: BlobSource {
  let source: HTTPRangeSource
  let server: any Sendable
  init(_ source: HTTPRangeSource, of server: any Sendable) {
    self.source = source
    self.server = server
  }
  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try source.open(at: offset, cancel)
  }
}
