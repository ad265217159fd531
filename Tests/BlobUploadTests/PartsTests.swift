import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// One large file is sent in parts that are separate uploads, and the server concatenates them.
@Suite(.serialized) struct PartsTests {
  static let length = 17 << 20 + 1
  let pattern = PatternSource(length: Int64(length), seed: 5)

  @Test func aLargeFileArrivesInParts() async throws {
    let bench = try await Bench()
    let progress = UploadProgress()
    try await bench.upload(pattern, progress)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.peer.names() == ["video"] && bench.peer.unfinished() == 0)
    #expect(bench.concats.count { $0 == "partial" } == 5)
    #expect(bench.concats.count { $0.hasPrefix("final;/") } == 1)
    #expect(bench.sent == pattern.length)
    #expect(progress.acknowledged == pattern.length && progress.sent == pattern.length)
  }

  /// Connections of several parts break: each part is resumed at its own offset.
  @Test func aBrokenConnectionCostsItsPartOnly() async throws {
    let bench = try await Bench(
      .init([.none, .cutUp(after: 2_000_000), .cutUp(after: 3_000_000), .dropResponse(3), .reset(after: 1_000_000)]))
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.sent < pattern.length + 12 << 20, "\(bench.sent)")
  }

  @Test func theNextRunFindsEveryPart() async throws {
    let folder = try ScratchFolder()
    let bench = try await Bench()
    // Reading fails within the third of the five parts.
    let failing = FaultySource(pattern, .fail(at: 10 << 20, BlobError(.io, "the card was pulled out")))
    for number in 1...2 {
      let journal = try await Journal(at: folder.path.appending("journal"))
      var uploader = bench.uploader
      uploader.journal = journal
      if number == 1 {
        #expect(await uploader.error(failing)?.side == .source)
        let entry = try #require(try await journal.unfinished().first)
        #expect(entry.session?.sizeOfParts == 4 << 20)
        #expect(entry.receipts.count >= 2 && entry.receipts.allSatisfy { $0.state["url"] != nil })
      } else {
        let before = bench.sent
        let left = pattern.length - bench.peer.unfinished()
        _ = try await uploader.upload(pattern, as: "video")
        #expect(bench.sent - before <= left + 64 << 10, "\(bench.sent - before) bytes for \(left) that were missing")
      }
      await journal.close()
    }
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.peer.unfinished() == 0)
  }

  /// A bench, and an uploader with a journal, after an upload of `pattern` that failed at 10 MiB. The journal is in the
  /// folder, which is deleted when it is no longer referenced.
  func interrupted() async throws -> (Bench, Uploader, Journal, ScratchFolder) {
    let folder = try ScratchFolder()
    let bench = try await Bench()
    let journal = try await Journal(at: folder.path.appending("journal"))
    var uploader = bench.uploader
    uploader.journal = journal
    let failing = FaultySource(pattern, .fail(at: 10 << 20, BlobError(.io, "the card was pulled out")))
    #expect(await uploader.error(failing)?.side == .source)
    return (bench, uploader, journal, folder)
  }

  /// The acknowledged bytes in the journal do not decrease while the parts of an earlier run are queried one by one.
  @Test func theAcknowledgedBytesDoNotDecreaseWhileEarlierPartsAreQueried() async throws {
    let (bench, uploader, journal, folder) = try await interrupted()
    defer { withExtendedLifetime(folder) {} }
    let entry = try #require(try await journal.unfinished().first)
    let held = bench.peer.unfinished()
    let ledger = OffsetLedger()
    let target = uploader.destination.target("video", length: pattern.length)
    var run = ParallelRun(
      UploadEngine(uploader), TusConcatenation(tus: Tus()), pattern, pattern.info, length: pattern.length, to: target,
      ledger, entry.session, entry.receipts, UploadProgress())
    _ = try await run.run()
    #expect(ledger.offsets.min() ?? 0 >= held, "\(ledger.offsets), and \(held) were held")
    await journal.close()
  }

  /// The source has other bytes under the same name: the parts of the old version are deleted.
  @Test func anotherVersionGivesThePartsUp() async throws {
    let (bench, uploader, journal, folder) = try await interrupted()
    defer { withExtendedLifetime(folder) {} }
    #expect(bench.peer.unfinished() > 0)
    let other = PatternSource(length: 1000, seed: 6)
    _ = try await uploader.upload(other, as: "video")
    #expect(bench.peer.contents(of: "video") == other.bytes(count: 1000))
    #expect(bench.peer.unfinished() == 0)
    await journal.close()
  }

  /// The disk was mounted elsewhere: no checksums of parts are recorded, so they are not resumed.
  @Test func partsOfADoubtfulSourceAreGivenUp() async throws {
    let (bench, uploader, journal, folder) = try await interrupted()
    defer { withExtendedLifetime(folder) {} }
    let entry = try #require(try await journal.unfinished().first)
    _ = try await uploader.upload(
      pattern, pattern.info, to: uploader.destination.target("video", length: pattern.length), entry: entry.id,
      resuming: entry.session, receipts: entry.receipts, comparing: entry.sent)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.peer.unfinished() == 0, "the parts are deleted")
    #expect(bench.concats.count { $0.hasPrefix("final") } == 0)
    await journal.close()
  }

  /// A server that offers parts but refuses them gets the file in one piece, and no byte twice.
  @Test(arguments: [400, 403, 501]) func partsThatAreRefusedGoInOnePiece(_ status: Int) async throws {
    let bench = try await Bench { _, request in
      request.headers["Upload-Concat"] == nil ? .none : .answer(.status(status))
    }
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.concats == ["partial"])
    #expect(bench.sent == pattern.length)
  }

  @Test func aLostAnswerToTheLastRequestCostsNoByte() async throws {
    let lost = Mutex(false)
    let bench = try await Bench { _, request in
      guard request.headers["Upload-Concat"]?.hasPrefix("final") == true else { return .none }
      return lost.withLock { lost in
        defer { lost = true }
        return lost ? .none : .loseAnswer
      }
    }
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.sent == pattern.length)
  }

  /// If the server has lost a part, all parts are queried, and only the lost one is sent again.
  @Test func aPartThatIsForgottenIsSentAgain() async throws {
    let forgotten = Mutex<String?>(nil)
    let bench = try await Bench { _, request in
      if let concat = request.headers["Upload-Concat"], concat.hasPrefix("final") {
        return forgotten.withLock { path in
          if path != nil { return .none }
          path = concat.dropFirst(6).split(separator: " ").dropFirst().first.map(String.init)
          return .answer(.status(404))
        }
      }
      let isForgotten = request.method == "HEAD" && forgotten.withLock { $0 } == request.url.path
      return isForgotten ? .answer(.status(404)) : .none
    }
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.sent == pattern.length + 4 << 20)
  }

  /// All parts have expired when the server is asked to concatenate them.
  @Test(arguments: [404, 410]) func partsThatHaveAllExpiredAreSentAgain(_ status: Int) async throws {
    let expired = Mutex<Set<String>>([])
    let bench = try await Bench { _, request in
      expired.withLock { paths in
        guard let concat = request.headers["Upload-Concat"], concat.hasPrefix("final;"), paths.isEmpty else {
          return paths.contains(request.url.path) ? .answer(.status(status)) : .none
        }
        paths = Set(concat.dropFirst(6).split(separator: " ").map(String.init))
        return .answer(.status(400))
      }
    }
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
    #expect(bench.sent == 2 * pattern.length)
  }

  /// The server reports that it has made a file of the parts, and then knows neither the file nor the upload.
  @Test func aWholeThatNobodyKnowsIsNotBelieved() async throws {
    let bench = try await Bench { _, request in
      if request.headers["Upload-Concat"]?.hasPrefix("final") == true {
        return .answer(.status(201, ["Location": "/nowhere"]))
      }
      return request.url.path == "/nowhere" ? .answer(.status(404)) : .none
    }
    let error = await #expect(throws: UploadError.self) { try await bench.upload(pattern) }
    #expect(error?.side == .file && error?.message.contains("knows neither the upload") == true, "\(error as Any)")
  }

  /// The server has the file, and has forgotten its upload.
  @Test func aWholeWhoseUploadIsForgottenIsFoundByItsName() async throws {
    let isMade = Mutex(false)
    let bench = try await Bench { _, request in
      if request.headers["Upload-Concat"]?.hasPrefix("final") == true { isMade.withLock { $0 = true } }
      let isOfUpload = request.method == "HEAD" && request.headers["Tus-Resumable"] != nil
      return isOfUpload && isMade.withLock { $0 } ? .answer(.status(404)) : .none
    }
    try await bench.upload(pattern)
    #expect(bench.peer.contents(of: "video") == pattern.bytes(count: Self.length))
  }

  @Test func aRefusalOfTheWholeIsFinal() async throws {
    let bench = try await Bench { _, request in
      request.headers["Upload-Concat"]?.hasPrefix("final") == true ? .answer(.status(409, text: "taken")) : .none
    }
    let error = await #expect(throws: UploadError.self) { try await bench.upload(pattern) }
    #expect(error?.status == 409 && error?.recovery == .giveUp)
    #expect(bench.sent == pattern.length, "nothing is sent again for it")
  }

  /// One server behind a proxy, and the requests that it received.
  final class Bench: Sendable {
    let peer: ServedFolder
    let state: Mutex<Uploader>
    private let counting: CountingTransport
    private let seen: Concats

    init(
      _ schedule: ChaosProxy.Schedule = .init([]), distance: Duration? = nil,
      _ fault: @escaping @Sendable (Int, HTTPRequest) -> FaultyTransport.Fault = { _, _ in .none }
    ) async throws {
      peer = try ServedFolder()
      let proxy = ChaosProxy(to: peer.endpoint.port, schedule)
      counting = CountingTransport(SocketTransport(.init(connections: 8))) { _ in
        withExtendedLifetime(proxy) {}
        if let distance { try? await Task.sleep(for: distance) }  // simulates the latency
      }
      let concats = Concats()
      let transport = FaultyTransport(counting) { number, request in
        if let concat = request.headers["Upload-Concat"] { concats.add(concat) }
        return fault(number, request)
      }
      var destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
      destination.endpoint = HTTPURL("http://127.0.0.1:\(proxy.port)/")!
      destination.headers["Host"] = "127.0.0.1:\(peer.endpoint.port)"
      var uploader = Uploader(
        destination, transport: transport,
        retry: RetryPolicy(retries: 10, first: .milliseconds(1), longest: .milliseconds(20)))
      uploader.partsAtOnce = 3
      state = Mutex(uploader)
      seen = concats
    }

    var concats: [String] { seen.all }
    var sent: Int64 { counting.sent }
    var uploader: Uploader { state.withLock { $0 } }

    func upload(_ source: PatternSource, _ progress: UploadProgress = UploadProgress()) async throws(UploadError) {
      let uploader = uploader
      _ = try await uploader.upload(
        source, source.info, to: uploader.destination.target("video", length: source.length), progress: progress)
    }
  }

  final class OffsetLedger: UploadLedger {
    let entry: Int64? = nil
    private let noted = Mutex<[Int64]>([])
    var offsets: [Int64] { noted.withLock { $0 } }
    func opened(_ session: UploadSession) {}
    func acknowledged(_ offset: Int64) { noted.withLock { $0.append(offset) } }
    func restarted() {}
    func abandoned() {}
    func recognized(_ validator: Validator) {}
    func receipt(_ receipt: PartReceipt) {}
    func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)? { nil }
    func flush() async throws(UploadError) {}
  }

  final class Concats: Sendable {
    private let fields = Mutex<[String]>([])
    var all: [String] { fields.withLock { $0 } }
    func add(_ field: String) { fields.withLock { $0.append(field) } }
  }
}

extension Uploader {
  /// The error with which the upload of a video ends; nil if it succeeds.
  fileprivate func error(_ source: any BlobSource) async -> UploadError? {
    do { _ = try await upload(source, as: "video") } catch { return error }
    return nil
  }
}
