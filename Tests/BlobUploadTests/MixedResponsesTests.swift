import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Servers, or proxies before them, that answer a request twice: the second response is taken for the response to the
/// next request on that connection, which may store nothing.
@Suite struct MixedResponsesTests {
  /// How the connection shows that a response was not for its request.
  enum Sign: CaseIterable {
    /// A response comes that no request has asked for.
    case unaskedResponse
    /// The next request gets no response, though the connection was just in use.
    case lostConnection
  }

  /// Stores files, except that the first PUT of `b` is answered and not stored.
  private func peer(_ sign: Sign, _ files: StoredFiles) -> HTTPPeer {
    HTTPPeer { request in
      if request.method == "HEAD" { return files[request.path].map { .init(200, [:], $0) } ?? .init(404) }
      let isFirst = files.isFirst(request.path)
      if isFirst, request.path == "/b" {
        let surplus = "1\r\nContent-Length: 0\r\n\r\nHTTP/1.1 201 Created\r\nX-Number: 2"
        return .init(201, sign == .unaskedResponse ? ["X-Number": surplus] : [:])
      }
      if isFirst, request.path == "/c", sign == .lostConnection { return nil }
      files[request.path] = request.body
      return .init(201)
    }
  }

  private func queue(_ desk: Desk, _ peer: HTTPPeer) -> UploadQueue { desk.queue(to: peer) }

  @Test(arguments: Sign.allCases) func aFileThatWasOnlySaidToBeStoredIsSentAgain(_ sign: Sign) async throws {
    let (desk, files) = (try await Desk(), StoredFiles())
    let peer = peer(sign, files)
    defer { peer.stop() }
    let outcomes = try await desk.run(queue(desk, peer), ["a", "b", "c", "d"])
    #expect(outcomes.sent == 4)
    #expect(files.paths == ["/a", "/b", "/c", "/d"], "\(peer.requests)")
    // The journal says the same.
    #expect(try await desk.run(queue(desk, peer), ["a", "b", "c", "d"]).doneBefore == 4)
  }

  @Test func aFileThatIsLostAgainAndAgainFails() async throws {
    let desk = try await Desk()
    let peer = HTTPPeer { request in
      if request.method == "HEAD" {
        return request.path == "/b" ? .init(404) : .init(200, [:], PatternSource(length: 1000).bytes(count: 1000))
      }
      let surplus = "1\r\nContent-Length: 0\r\n\r\nHTTP/1.1 201 Created\r\nX-Number: 2"
      return .init(201, request.path == "/b" ? ["X-Number": surplus] : [:])
    }
    defer { peer.stop() }
    _ = try await desk.run(queue(desk, peer), ["a", "b", "c"])
    let failed = try await desk.journal.entries(.failed, limit: 10)
    #expect(failed.map(\.intent.path) == ["b"])
    #expect(failed.first?.error?.contains("answers requests twice") == true, "\(failed)")
  }

  /// Most servers close a connection at times, and lose nothing.
  @Test func aFileThatIsThereIsNotSentAgain() async throws {
    let requests = try await requestsOfFourFiles { files, request in
      files[request.path].map { .init(200, [:], $0) } ?? .init(404)
    }
    #expect(requests.count { $0 == "HEAD /b" } == 1, "\(requests)")
  }

  /// As servers do whose script writes no content for HEAD.
  @Test func aServerThatReportsNoLengthForHeadHasTheFile() async throws {
    _ = try await requestsOfFourFiles { files, request in
      let file = files[request.path]
      if request.method == "HEAD" { return file == nil ? .init(404) : .init(200) }
      return file.map { .init(200, [:], $0) } ?? .init(404)
    }
  }

  /// The requests of a push of four files to a server that stores all, and closes the connection once after the second
  /// one. Each of the first two must be sent once. `look` answers the requests that are no PUT.
  private func requestsOfFourFiles(
    _ look: @escaping @Sendable (StoredFiles, HTTPPeer.Request) -> HTTPPeer.Reply
  ) async throws -> [String] {
    let (desk, files) = (try await Desk(), StoredFiles())
    let peer = HTTPPeer { request in
      if request.method != "PUT" { return look(files, request) }
      if files.isFirst(request.path), request.path == "/c" { return nil }
      files[request.path] = request.body
      return .init(201)
    }
    defer { peer.stop() }
    #expect(try await desk.run(queue(desk, peer), ["a", "b", "c", "d"]).sent == 4)
    #expect(peer.requests.count { $0 == "PUT /b" } == 1, "\(peer.requests)")
    return peer.requests
  }
}

extension Desk {
  /// A queue that sends one file at a time by PUT, over one connection.
  func queue(to peer: HTTPPeer) -> UploadQueue {
    var queue = queue(SocketTransport(.init(connections: 1)))
    queue.uploader.destination = UploadDestination(
      endpoint: peer.url, uploadProtocol: PlainPut(), limits: PlainPut().limits)
    queue.jobs = 1
    return queue
  }
}

/// The files of a server, by path.
final class StoredFiles: Sendable {
  private let files = Mutex<[String: [UInt8]]>([:])
  private let asked = Mutex<Set<String>>([])

  subscript(path: String) -> [UInt8]? {
    get { files.withLock { $0[path] } }
    set { files.withLock { $0[path] = newValue } }
  }

  var paths: [String] { files.withLock { $0.keys.sorted() } }

  /// Whether this is the first call for `path`.
  func isFirst(_ path: String) -> Bool { asked.withLock { $0.insert(path).inserted } }
}
