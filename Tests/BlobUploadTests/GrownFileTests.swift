import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests files that were sent and have grown since.
@Suite struct GrownFileTests {
  private let peer: ServedFolder
  private let desk: Desk

  init() async throws {
    peer = try ServedFolder()
    desk = try await Desk()
  }

  private func queue(_ transport: any Transport = SocketTransport(), replacesGrown: Bool = true) -> UploadQueue {
    var queue = desk.queue(transport)
    queue.uploader.destination = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    queue.replacesGrown = replacesGrown
    return queue
  }

  private func arrived(_ length: Int64) -> Bool {
    peer.contents(of: "film") == PatternSource(length: length).bytes(count: Int(length))
  }

  /// A process was killed after it claimed the new version, and recorded nothing else.
  @Test func aRunThatWasKilledBeforeItReplacedAGrownFileIsFollowedByOneThatDoes() async throws {
    defer { peer.stop() }
    #expect(try await desk.run(queue(), ["film"]).sent == 1)
    var queue = queue()
    queue.destinationID = try await desk.journal.destinationID(
      JournalDestination(endpoint: host.text, protocolName: queue.uploader.destination.uploadProtocol.name))
    for length in [1500, 2000] as [Int64] {
      let source = PatternSource(length: length)
      let claimed = try await queue.claim([
        UploadItem(
          source: source, info: source.info, identity: "/card/film",
          target: queue.uploader.destination.target("film", length: length, overwrite: false))
      ])
      guard case .replaced(let id, let old) = claimed[0].claim else {
        Issue.record("\(claimed[0].claim)")
        return
      }
      #expect(old.sentLength == 1000)
      desk.journal.released(id)
    }
    let outcomes = try await desk.run(queue, ["film"], length: 2000)
    #expect(outcomes.sent == 1, "\(outcomes.error("film")?.message ?? "")")
    #expect(arrived(2000))
  }

  /// The server has stored a version, the first one or a later one, and the response did not arrive.
  @Test(arguments: [false, true]) func aVersionWhoseResponseWasLostIsReplacedToo(isFirst: Bool) async throws {
    defer { peer.stop() }
    if !isFirst { #expect(try await desk.run(queue(), ["film"]).sent == 1) }
    var lost = queue(LosingResponses(SocketTransport()))
    lost.uploader.retry = RetryPolicy(retries: 0)
    _ = try? await desk.run(lost, ["film"], length: 1500)
    #expect(arrived(1500))
    #expect(try await desk.journal.entries(.done, limit: -1).allSatisfy { $0.sentLength != 1500 })
    let outcomes = try await desk.run(queue(), ["film"], length: 2000)
    #expect(outcomes.sent == 1, "\(outcomes.error("film")?.message ?? "")")
    #expect(arrived(2000))
  }

  /// The server has the beginning of the file, and the journal knows no version of that length.
  @Test(arguments: [0, 500, 1500] as [Int64]) func aBeginningOfAnotherLengthIsSomeoneElses(_ length: Int64) async throws
  {
    defer { peer.stop() }
    #expect(try await desk.run(queue(), ["film"]).sent == 1)
    _ = try await queue().uploader.upload(PatternSource(length: length), as: "film", overwrite: true)
    #expect(try await desk.run(queue(), ["film"], length: 2000).error("film")?.status == 409)
    #expect(peer.contents(of: "film")?.count == Int(length))
  }

  @Test func aGrownFileThatCannotBeComparedFailsForThatReason() async throws {
    defer { peer.stop() }
    #expect(try await desk.run(queue(), ["film"]).sent == 1)
    let deaf = Unreadable(SocketTransport())
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue(deaf), ["film"], length: 2000)
    }
    #expect(error?.message.contains("the connection broke") == true, "\(error?.message ?? "")")
    #expect(deaf.methods.count > 1 && Set(deaf.methods) == ["GET"], "\(deaf.methods)")
    #expect(arrived(1000))
    #expect(try await desk.run(queue(), ["film"], length: 2000).sent == 1)
    #expect(arrived(2000))
  }

  @Test func aGrownFileDoesNotReplaceWhatSomeoneElseHasWritten() async throws {
    defer { peer.stop() }
    #expect(try await desk.run(queue(), ["film"]).sent == 1)
    let other = PatternSource(length: 1000, seed: 1)
    _ = try await queue().uploader.upload(other, as: "film", overwrite: true)
    #expect(try await desk.run(queue(), ["film"], length: 2000).error("film")?.status == 409)
    #expect(peer.contents(of: "film") == other.bytes(count: 1000))
  }

  /// The run is killed after the server has stored the grown file, and before the journal records it.
  @Test func theEntryOfAnotherSourceIsForgottenBeforeAGrownFileReplacesItsFile() async throws {
    defer { peer.stop() }
    var queue = queue()
    #expect(try await desk.run(queue, ["film"]).sent == 1)
    queue.destinationID = try await desk.journal.destinationID(
      JournalDestination(endpoint: host.text, protocolName: queue.uploader.destination.uploadProtocol.name))
    func claim(_ identity: BytePath, _ length: Int64) async throws -> JournalClaim {
      let source = PatternSource(length: length)
      let target = queue.uploader.destination.target("film", length: length)
      return try await queue.claim([UploadItem(source: source, info: source.info, identity: identity, target: target)])[
        0
      ]
      .claim
    }
    let other = try #require(try await claim("/other/film", 1000).id)
    desk.journal.done(other, UploadResult(), replaces: false)
    #expect(try await claim("/other/film", 1000).name == "done")
    let grown = try #require(try await claim("/card/film", 2000).id)
    desk.journal.released(grown)
    #expect(try await claim("/other/film", 1000).name == "fresh")
  }

  @Test func onlyAWatchReplacesAGrownFile() async throws {
    defer { peer.stop() }
    #expect(try await desk.run(queue(), ["film"]).sent == 1)
    #expect(try await desk.run(queue(replacesGrown: false), ["film"], length: 2000).error("film")?.status == 409)
    #expect(try await desk.run(queue(), ["film"], length: 2000).sent == 1)
    #expect(arrived(2000))
  }
}

/// Fails every request that reads.
private final class Unreadable: Transport {
  private let base: any Transport
  private let state = Mutex<[String]>([])

  init(_ base: any Transport) { self.base = base }

  var methods: [String] { state.withLock { $0 } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    state.withLock { $0.append(request.method) }
    if request.method == "GET" { throw TransportError(.broken, "the connection broke") }
    return try await base.send(request, body: body, on)
  }
}

/// Sends every request, and loses the responses to those that store something.
private final class LosingResponses: Transport {
  private let base: any Transport

  init(_ base: any Transport) { self.base = base }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let response = try await base.send(request, body: body, on)
    if request.method == "PUT" { throw TransportError(.broken, "the connection broke") }
    return response
  }
}
