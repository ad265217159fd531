import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Servers that make false claims about the bytes they were sent. Their responses alone never make an upload count as
/// stored.
@Suite struct LyingServerTests {
  @Test(arguments: Lie.all) func noUploadSucceedsOnALie(_ lie: Lie) async throws {
    let requests = Atomic(0)
    let peer = HTTPPeer { request in
      requests.add(1, ordering: .relaxed)
      return lie.answer(request)
    }
    defer { peer.stop() }
    let error = await push(lie, to: peer.url)
    #expect(error != nil, "\(lie): it counts as stored")
    #expect(error?.message.contains("127.0.0.1") == true || error?.message.contains("a.mov") == true, "\(error as Any)")
    #expect(requests.load(ordering: .relaxed) < 100, "\(lie): it was asked for ever")
  }

  /// The last part tells the server the length. If the response to it is lost, the server reports the length later.
  @Test func aLengthThatWasToldIsBelieved() async throws {
    let held = Mutex<(offset: Int64, length: Int64?)>((0, nil))
    let peer = HTTPPeer { request in
      switch request.method {
      case "POST": return .init(201, ["Location": "/up/1"])
      case "PATCH":
        return held.withLock { held in
          held.offset += Int64(request.body.count)
          guard let length = request.headers.bytes("Upload-Length") else { return tus(204, held.offset) }
          held.length = length
          return nil
        }
      default: return held.withLock { tus(200, $0.offset, of: $0.length) }
      }
    }
    defer { peer.stop() }
    let error = await push(Lie("an answer is lost", Tus(wholeUpTo: 0), isPipe: true) { _ in nil }, to: peer.url)
    #expect(error == nil)
    #expect(held.withLock { $0.offset } == Lie.length)
  }

  /// The journal contains the length before the server does, for the next run.
  @Test func theLengthOfAPipeIsInTheJournalBeforeItIsSent() async throws {
    let desk = try await Desk()
    let seen = Mutex<String?>(nil)
    let peer = HTTPPeer { request in
      switch request.method {
      case "POST": return .init(201, ["Location": "/up/1"])
      case "PATCH" where request.headers["Upload-Length"] != nil: return .init(507)
      case "PATCH": return tus(204, (request.headers.bytes("Upload-Offset") ?? 0) + Int64(request.body.count))
      default: return tus(200, 0)
      }
    }
    defer { peer.stop() }
    var uploader = uploader(for: Lie("", Tus(wholeUpTo: 0), isPipe: true) { _ in nil }, to: peer.url)
    uploader.journal = desk.journal
    _ = try? await uploader.upload(piped(PatternSource(length: Lie.length)), as: "a.mov")
    let entry = try #require(try await desk.journal.unfinished().first)
    seen.withLock { $0 = entry.session?.state["end"] }
    #expect(seen.withLock { $0 } == "\(Lie.length)")
  }

  /// An empty body that is refused as too large cannot be made smaller.
  @Test func anEmptyBodyThatIsTooLargeIsNotCutForEver() async {
    let destination = UploadDestination(endpoint: host, uploadProtocol: Tus(), limits: PartLimits())
    #expect(destination.shrink(below: 0, to: nil) == nil)
    #expect(destination.shrink(below: 0, to: 5) == nil)
    #expect(destination.shrink(below: 1 << 20, to: 1) != 1)
  }

  private func uploader(for lie: Lie, to url: HTTPURL) -> Uploader {
    let takesAll = lie.uploadProtocol is PlainPut || lie.uploadProtocol is FormPost || lie.uploadProtocol is WebDAV
    var uploader = Uploader(
      UploadDestination(
        endpoint: url, uploadProtocol: lie.uploadProtocol,
        limits: PartLimits(firstPart: takesAll ? .max : lie.wholeUpTo)),
      transport: SocketTransport(.init(connections: 1)), retry: RetryPolicy(retries: 2, first: .milliseconds(1)),
      partSize: lie.partSize)
    uploader.spool = SpoolOptions(memory: 40_000)
    return uploader
  }

  private func push(_ lie: Lie, to url: HTTPURL) async -> UploadError? {
    let pattern = PatternSource(length: Lie.length)
    do {
      _ = try await uploader(for: lie, to: url).upload(lie.isPipe ? piped(pattern) : pattern, as: "a.mov")
      return nil
    } catch {
      return error
    }
  }
}

/// One false response of a server to an upload of `length` bytes.
struct Lie: Sendable, CustomTestStringConvertible {
  static let length: Int64 = 100_000

  let name: String
  let uploadProtocol: any UploadProtocol
  let isPipe: Bool
  let partSize: Int64?
  let wholeUpTo: Int64
  let answer: HTTPPeer.Answer

  init(
    _ name: String, _ uploadProtocol: any UploadProtocol, isPipe: Bool = false, partSize: Int64? = nil,
    wholeUpTo: Int64 = 0,
    _ answer: @escaping HTTPPeer.Answer
  ) {
    self.name = name
    self.uploadProtocol = uploadProtocol
    self.isPipe = isPipe
    self.partSize = partSize
    self.wholeUpTo = wholeUpTo
    self.answer = answer
  }

  var testDescription: String { "\(uploadProtocol.name)\(isPipe ? ", a pipe" : ""): \(name)" }

  static let all = tusFiles + tusPipes + resumable + wholes + dav

  /// A tus server with the given responses to PATCH and HEAD; nil: it closes the connection.
  private static func tusServer(
    created: HTTPHeaders = [:], patch: @escaping HTTPPeer.Answer,
    head: @escaping HTTPPeer.Answer = { _ in tus(200, 0) }
  ) -> HTTPPeer.Answer {
    { request in
      var headers = created
      headers["Location"] = "/up/1"
      switch request.method {
      case "POST": return .init(201, headers)
      case "PATCH": return patch(request)
      case "HEAD": return head(request)
      default: return .init(404)
      }
    }
  }

  private static let tusFiles: [Lie] = {
    let uploadProtocol = Tus(wholeUpTo: 0)
    return [
      Lie(
        "it has all before the first byte", uploadProtocol, tusServer(created: ["Upload-Offset": "100000"]) { _ in nil }
      ),
      Lie(
        "the last bytes never count", uploadProtocol,
        tusServer(patch: { _ in tus(204, 99_990) }, head: { _ in tus(200, 99_990, of: length) })),
      Lie("twice the bytes of a part", uploadProtocol, partSize: 10_000, tusServer(patch: { _ in tus(204, 20_000) })),
      Lie("all after the first part", uploadProtocol, partSize: 10_000, tusServer(patch: { _ in tus(204, 100_000) })),
      Lie(
        "all after a part whose answer is lost", uploadProtocol, partSize: 10_000,
        tusServer(patch: { _ in nil }, head: { _ in tus(200, 100_000, of: length) })),
      Lie(
        "more after a part whose answer is lost", uploadProtocol, partSize: 10_000,
        tusServer(patch: { _ in nil }, head: { _ in tus(200, 20_000, of: length) })),
      Lie(
        "offsets go backwards", uploadProtocol, partSize: 10_000,
        tusServer(
          patch: { request in
            let start = request.headers.bytes("Upload-Offset") ?? 0
            return tus(204, start == 0 ? 10_000 : start - 1)
          }, head: { _ in tus(200, 10_000, of: length) })),
      Lie(
        "another length than it was told", uploadProtocol, partSize: 10_000,
        tusServer(patch: { _ in nil }, head: { _ in tus(200, 10_000, of: 10_000) })),
      Lie(
        "all of it came with the creation", Tus(), wholeUpTo: 4 << 20,
        tusServer(created: ["Upload-Offset": "100001"]) { _ in nil }),
    ]
  }()

  private static let tusPipes: [Lie] = {
    let uploadProtocol = Tus(wholeUpTo: 0)
    func pipe(_ name: String, _ answer: @escaping HTTPPeer.Answer) -> Lie {
      Lie(name, uploadProtocol, isPipe: true, answer)
    }
    return [
      pipe(
        "it was told a length of 0", tusServer(patch: { _ in nil }, head: { _ in tus(200, 0, of: 0) })),
      pipe(
        "it was told that the first part is all",
        tusServer(patch: { _ in nil }, head: { _ in tus(200, 40_000, of: 40_000) })),
      pipe("twice the bytes of a part", tusServer(patch: { _ in tus(204, 80_000) })),
      pipe("it keeps nothing", tusServer(patch: { _ in tus(204, 0) })),
      pipe("it tells no offset", tusServer(patch: { _ in .init(204) })),
      pipe("it never tells an offset", tusServer(patch: { _ in .init(204) }, head: { _ in .init(200) })),
      pipe(
        "more after a part whose answer is lost", tusServer(patch: { _ in nil }, head: { _ in tus(200, 80_000) })),
      pipe(
        "another end than it was told",
        tusServer(
          patch: { request in
            if request.headers["Upload-Length"] != nil { return nil }
            return tus(204, (request.headers.bytes("Upload-Offset") ?? 0) + Int64(request.body.count))
          }, head: { _ in tus(200, 80_000, of: 80_000) })),
    ]
  }()

  private static func append(_ offset: Int64?, isComplete: Bool, status: Int = 204) -> HTTPPeer.Reply {
    var headers: HTTPHeaders = ["Upload-Complete": isComplete ? "?1" : "?0"]
    headers["Upload-Offset"] = offset.map { String($0) }
    return .init(status, headers)
  }

  private static let resumable: [Lie] = {
    let uploadProtocol = IETFResumable(wholeUpTo: 0)
    func server(
      created: HTTPPeer.Reply = append(0, isComplete: false, status: 201), patch: @escaping HTTPPeer.Answer,
      head: @escaping HTTPPeer.Answer = { _ in append(0, isComplete: false) }
    ) -> HTTPPeer.Answer {
      { request in
        switch request.method {
        case "POST":
          var reply = created
          reply.headers["Location"] = "/up/1"
          return reply
        case "PATCH": return patch(request)
        case "HEAD": return head(request)
        default: return .init(204)
        }
      }
    }
    let isAll: HTTPPeer.Answer = { _ in append(nil, isComplete: true) }
    return [
      Lie(
        "complete before the first byte", uploadProtocol,
        server(created: append(0, isComplete: true, status: 201), patch: { _ in nil })),
      Lie("complete after the first part", uploadProtocol, partSize: 10_000, server(patch: isAll)),
      Lie(
        "complete after a part whose answer is lost", uploadProtocol, partSize: 10_000,
        server(patch: { _ in nil }, head: isAll)),
      Lie(
        "more after a part whose answer is lost", uploadProtocol, partSize: 10_000,
        server(patch: { _ in nil }, head: { _ in append(20_000, isComplete: false) })),
      Lie(
        "twice the bytes of a part", uploadProtocol, partSize: 10_000,
        server(patch: { _ in append(20_000, isComplete: false) })),
      Lie("complete with fewer bytes", uploadProtocol, server(patch: { _ in append(90_000, isComplete: true) })),
      Lie("complete with more bytes", uploadProtocol, server(patch: { _ in append(100_001, isComplete: true) })),
      Lie(
        "an ordinary answer that is no success", IETFResumable(), wholeUpTo: 4 << 20, { _ in .init(202) }),
      Lie("complete after the first part", uploadProtocol, isPipe: true, server(patch: isAll)),
      Lie(
        "complete after a part whose answer is lost", uploadProtocol, isPipe: true,
        server(patch: { _ in nil }, head: isAll)),
      Lie(
        "twice the bytes", uploadProtocol, isPipe: true,
        server(patch: { request in
          let start = request.headers.bytes("Upload-Offset") ?? 0
          return append(start + 2 * Int64(request.body.count) + 1, isComplete: false)
        })),
      Lie(
        "complete with fewer bytes", uploadProtocol, isPipe: true,
        server(patch: { request in
          if request.headers["Upload-Complete"] == "?1" { return append(90_000, isComplete: true) }
          return append(nil, isComplete: false)
        })),
    ]
  }()

  /// Successes that do not say that the whole file is stored, and successes for every request.
  private static let wholes: [Lie] =
    everything
    + [202, 205, 206, 207].flatMap { status in
      let answer: HTTPPeer.Answer = { _ in .init(status) }
      return [
        Lie("\(status)", PlainPut(), answer), Lie("\(status)", PlainPut(), isPipe: true, answer),
        Lie("\(status)", FormPost(), answer), Lie("\(status)", FormPost(), isPipe: true, answer),
      ]
    }
}

private func tus(_ status: Int, _ offset: Int64, of length: Int64? = nil) -> HTTPPeer.Reply {
  var headers: HTTPHeaders = ["Tus-Resumable": "1.0.0", "Upload-Offset": String(offset)]
  headers["Upload-Length"] = length.map { String($0) }
  return .init(status, headers)
}
