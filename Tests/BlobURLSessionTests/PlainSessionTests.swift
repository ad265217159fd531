import BlobStreams
import BlobTesting
import TestSupport
import BlobURLSession
import Blobs
import Foundation
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// `setBody` in an application's session that is configured for streamed bodies.
@Suite(.timeLimit(.minutes(1)))
struct PlainSessionTests {
  private let pattern = PatternSource(length: 5_000_001)

  @Test func theLengthIsExactAndTheDelegateIsInformedOfEveryByte() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let listener = Listener()
    let session = URLSession(configuration: carrying(), delegate: listener, delegateQueue: nil)
    session.dataTask(with: try request(to: peer.port, pattern)).resume()
    let end = await listener.end()
    #expect(end.error == nil && end.status == 200 && end.content == Data("ok".utf8))
    #expect(end.sent == 5_000_001 && end.told == [5_000_001])
    #expect(peer.seen.values("Content-Length") == ["5000001"] && peer.seen.values("Transfer-Encoding") == [])
    #expect(Array(peer.seen.body()) == pattern.bytes(count: 5_000_001))
    session.invalidateAndCancel()
  }

  @Test func completionHandlerIsGivenTheAnswer() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let (data, response) = try await URLSession(configuration: carrying()).data(for: request(to: peer.port, pattern))
    #expect((response as? HTTPURLResponse)?.statusCode == 200 && data == Data("ok".utf8))
  }

  @Test func fieldsOfTheConfigurationAreSent() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let configuration = carrying()
    configuration.httpAdditionalHeaders = ["X-Both": "configuration", "X-One": "configuration"]
    var request = try request(to: peer.port, pattern)
    request.setValue("request", forHTTPHeaderField: "X-Both")
    _ = try await URLSession(configuration: configuration).data(for: request)
    #expect(peer.seen.values("X-Both") == ["request"] && peer.seen.values("X-One") == ["configuration"])
  }

  @Test func slowBodiesStallNoOtherTask() async throws {
    let slow = ScriptedPeer([.readHead, .discard])
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let session = URLSession(configuration: carrying())
    let stalled = FaultySource(PatternSource(length: 4 << 20), .stall(at: 100_000))
    let tasks = try (0..<16).map { _ in session.dataTask(with: try request(to: slow.port, stalled, length: 4 << 20)) }
    for task in tasks { task.resume() }
    await slow.wait { seen in seen.steps.filter { $0 == 1 }.count == 16 }
    let (_, response) = try await session.data(for: request(to: peer.port, pattern))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    // The session itself loads this request on its own queue. It is not http, because Foundation leaks 43 bytes there
    // with each session.
    let (data, _) = try await session.data(from: URL(string: "data:text/plain,ok")!)
    #expect(data == Data("ok".utf8))
    for task in tasks { task.cancel() }
    await slow.wait { $0.ended == 16 }
  }

  @Test func cancellingEndsTheTaskOnce() async throws {
    let peer = ScriptedPeer([.readHead, .discard])
    let listener = Listener()
    let session = URLSession(configuration: carrying(), delegate: listener, delegateQueue: nil)
    let stalled = FaultySource(PatternSource(length: 4 << 20), .stall(at: 100_000))
    let task = session.dataTask(with: try request(to: peer.port, stalled, length: 4 << 20))
    task.resume()
    await peer.wait { $0.steps.first == 1 }
    // On Linux `suspend` stops nothing, and `resume` does not restart the request.
    task.suspend()
    task.resume()
    task.cancel()
    #expect((await listener.end().error as? URLError)?.code == .cancelled)
    await peer.wait { $0.ended == 1 }
    #expect(peer.seen.received.count == 1)
  }

  @Test func sourcesOwnErrorIsUnderneath() async throws {
    let peer = ScriptedPeer([.readHead, .discard])
    let listener = Listener()
    let session = URLSession(configuration: carrying(), delegate: listener, delegateQueue: nil)
    let faulty = FaultySource(pattern, .fail(at: 1_000_000, BlobError(.io, "the card was pulled out", errno: 5)))
    session.dataTask(with: try request(to: peer.port, faulty)).resume()
    let error = await listener.end().error
    #if canImport(FoundationNetworking)
      #expect(BlobError(underlying: error)?.errno == 5)
    #else
      #expect(error != nil)
    #endif
  }

  @Test func connectionThatBreaksInTheHeadIsAnError() async throws {
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 200 OK\r\nContent-Le"), .close])
    await #expect(throws: URLError.self) { () async throws in
      _ = try await URLSession(configuration: carrying()).data(for: request(to: peer.port, pattern))
    }
  }

  private func carrying() -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.carryStreamedBodies()
    return configuration
  }

  private func request(to port: Int, _ source: any BlobSource, length: Int64 = 5_000_001) throws -> URLRequest {
    var request = foundationPut(to: port)
    try request.setBody(.forURLLoading(source), length: length)
    return request
  }
}

/// The delegate callbacks for one task.
private final class Listener: NSObject, URLSessionDataDelegate {
  struct End {
    var status = 0
    var content = Data()
    var sent: Int64 = 0
    /// The expected lengths that were reported.
    var told: Set<Int64> = []
    var error: (any Error)?
  }
  private let seen = Monitor(End())
  private let (ends, ending) = AsyncStream<Void>.makeStream()

  func end() async -> End {
    for await _ in ends { break }
    return seen.update { $0 }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData sent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend expected: Int64
  ) {
    seen.update { seen in
      seen.sent += sent
      seen.told.insert(expected)
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    seen.update { $0.status = (response as? HTTPURLResponse)?.statusCode ?? 0 }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    seen.update { $0.content += data }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    seen.update { $0.error = error }
    ending.yield()
  }
}
