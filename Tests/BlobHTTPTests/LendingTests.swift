import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

#if os(Linux)
  import Platform

  /// Bodies that `sendfile` sends from file to socket.
  @Suite struct LendingTests {
    private let transport = SocketTransport()
    /// The smallest size for which `sendfile` is used, and 1 MiB more.
    private static let size = Int(SendfileBody.queues + SendfileBody.least + 1 << 20)
    private let pattern = PatternSource(length: Int64(LendingTests.size), seed: 11)

    @Test func aLargeFileArrivesWholeAndHardlyAnyOfItIsRead() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer(Array(repeating: [.readRequest, answer()], count: 3).flatMap { $0 })
      let (sent, read) = (Tally(), Tally())
      let body = BlobSlice(Lender(file, read), start: 1000)
      for _ in 0..<2 {
        let response = try await transport.send(
          HTTPRequest("PUT", peer.url()), body: body, Exchange(sent: { sent.add($0) }))
        #expect(response.status == 200)
      }
      _ = try await transport.get(peer.url())
      let expected = pattern.bytes(at: 1000, count: Self.size - 1000)
      #expect(peer.seen.received.count == 1, "the connection is kept")
      #expect(Array(peer.body().prefix(expected.count)) == expected)
      #expect(sent.value == 2 * expected.count)
      #expect(read.value == 2 * Int(SendfileBody.queues), "the last bytes alone are read")
      #expect(peer.heads.contains("\r\nContent-Length: \(expected.count)\r\n"))
    }

    @Test func aFileWithoutAUsableDescriptorIsReadInstead() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer()])
      let read = Tally()
      _ = try await transport.put(peer.url(), Lender(file, read, region: FileRegion(descriptor: -1, offset: 0)))
      #expect(peer.body() == pattern.bytes(count: Self.size))
      #expect(read.value == Self.size)
    }

    @Test(arguments: FileChange.allCases)
    func aFileThatChangesWhileItIsLentNeverLooksComplete(_ change: FileChange) async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readHead, .hold, .read(Self.size), answer()])
      let task = Task { try await transport.put(peer.url(), FileSource(BytePath(file.path)), length: Int64(Self.size)) }
      await peer.wait { $0.steps == [1] }
      try file.undergo(change, pattern)
      peer.release()
      let error = await #expect(throws: TransportError.self) { try await task.value }
      #expect(error?.code == .source && error?.cause?.code == .changed, "\(String(describing: error))")
      await peer.wait { $0.ended == 1 }
      #expect(peer.seen.steps == [2], "the last byte has not come")
    }

    @Test(arguments: [[ScriptedPeer.Step.close], [.discard], [.reset]])
    func aRefusalDuringTheBodyIsReadAndTheConnectionClosed(_ end: [ScriptedPeer.Step]) async throws {
      let file = try TemporaryFile(pattern)
      let refusal = answer("413 Content Too Large", "too large")
      let peer = ScriptedPeer([.readHead, refusal] + end, [.readRequest, answer()])
      let response = try await transport.put(peer.url(), FileSource(BytePath(file.path)))
      #expect(response.status == 413 && response.body == Array("too large".utf8))
      #expect(try await transport.get(peer.url()).status == 200)
      #expect(peer.seen.received.count == 2)
    }

    @Test func aServerThatIsPleasedTooSoonIsNotBelieved() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readHead, answer("201 Created"), .hold])
      let error = await failure { () async throws(TransportError) in
        try await transport.put(peer.url(), FileSource(BytePath(file.path)))
      }
      #expect(error.code == .broken && error.message.contains("answered 201 after"), "\(error)")
    }

    @Test func theErrorOfABrokenConnectionHasItsNumbers() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readHead, .read(3 << 20), .reset])
      let error = await failure { () async throws(TransportError) in
        try await transport.put(peer.url(), FileSource(BytePath(file.path)))
      }
      #expect(error.code == .broken && error.message.contains("bytes were sent"), "\(error)")
    }

    /// The reused connection looks alive and closes once the request has arrived.
    @Test func aDeadConnectionIsReplacedAndTheBodyBeginsAnew() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
      _ = try await transport.get(peer.url())
      let sent = Tally()
      let response = try await transport.send(
        HTTPRequest("PUT", peer.url()), body: BlobSlice(FileSource(BytePath(file.path))),
        Exchange(sent: { sent.add($0) }))
      #expect(response.status == 200)
      #expect(peer.body(1) == pattern.bytes(count: Self.size))
      #expect(sent.value == Self.size, "nothing is told twice")
    }

    @Test func aRequestThatMustNotBeRepeatedIsNot() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
      _ = try await transport.get(peer.url())
      let error = await failure { () async throws(TransportError) in
        try await transport.send(
          HTTPRequest("PATCH", peer.url()), body: BlobSlice(FileSource(BytePath(file.path))), Exchange())
      }
      #expect(error.code == .broken, "\(error)")
      #expect(!peer.seen.received.dropFirst().contains { !$0.isEmpty })
    }

    @Test func cancellationEndsItAtOnce() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readHead, .hold])
      let task = Task { try await transport.put(peer.url(), FileSource(BytePath(file.path))) }
      await peer.wait { $0.steps == [1] }
      task.cancel()
      let error = await #expect(throws: TransportError.self) { try await task.value }
      #expect(error?.code == .cancelled)
    }

    @Test func aStalledConnectionIsGivenUp() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readHead, .hold])
      let transport = SocketTransport(.init(noProgress: .milliseconds(200)))
      let error = await failure { () async throws(TransportError) in
        try await transport.put(peer.url(), FileSource(BytePath(file.path)))
      }
      #expect(error.code == .timeout && error.message.contains("nothing moved for"), "\(error)")
    }

    @Test func interimResponsesAreReadDuringSendfile() async throws {
      let file = try TemporaryFile(pattern)
      let told = Tally()
      let peer = ScriptedPeer(
        [
          .readHead, .send("HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /u\r\n\r\n"), .read(Self.size),
          answer(),
        ])
      let response = try await transport.send(
        HTTPRequest("PUT", peer.url()), body: BlobSlice(FileSource(BytePath(file.path))),
        Exchange(interim: { told.add($0.status) }))
      #expect(response.status == 200 && told.value == 104)
    }
  }
#endif
