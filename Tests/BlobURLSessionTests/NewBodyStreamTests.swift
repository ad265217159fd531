import BlobHTTP
import BlobStreams
import BlobTesting
import Blobs
import Foundation
import TestSupport
import Testing

@testable import BlobURLSession

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The streams that a session asks for when it must send the body, or its rest, again.
@Suite(.timeLimit(.minutes(1)))
struct NewBodyStreamTests {
  private let pattern = PatternSource(length: 600_000)

  /// URLSession on Linux calls `needNewBodyStream` for such a task, as on Apple's systems.
  @Test func streamedRequestIsGivenItsBody() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let delegate = BodyDelegate(pattern)
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    var request = foundationPut(to: peer.port)
    try request.setBody(.forURLLoading(pattern), length: 600_000)
    request.httpBodyStream = nil
    session.uploadTask(withStreamedRequest: request).resume()
    await delegate.end()
    #expect(delegate.asked.all == [1])
    #expect(peer.seen.values("Content-Length") == ["600000"])
    #expect(peer.seen.body().elementsEqual(pattern.bytes(count: 600_000)))
    session.invalidateAndCancel()
  }

  /// Foundation on Linux never asks for the rest of a body, so this test calls the delegate's methods.
  @Test func exchangeGivesTheBodyAndItsRest() async throws {
    try await underWay(BlobSlice(pattern, start: 1000, length: 500_000)) { exchange, streams in
      let asked: [(offset: Int64?, count: Int)] = [
        (nil, 500_000), (300_000, 200_000), (499_999, 1), (500_000, 0), (nil, 500_000),
      ]
      for (offset, count) in asked {
        let stream = try #require(streams(offset))
        stream.open()
        let start = 501_000 - Int64(count)
        #expect(stream.readAll().elementsEqual(pattern.bytes(at: start, count: count)))
        #expect(stream.streamError == nil)
      }
    }
  }

  @Test func restThatIsNotThereIsRefused() async throws {
    try await underWay(BlobSlice(pattern, start: 1000, length: 500_000)) { exchange, streams in
      #expect(streams(-1) == nil)
      for offset in [500_001, Int64.max] {
        let stream = try #require(streams(offset))
        stream.open()
        #expect(stream.readAll().isEmpty)
        #expect(BlobError(underlying: stream.streamError)?.code == .outOfRange)
        // A session may still report bytes that it had sent before.
        exchange.sent(100_000)
      }
    }
  }

  @Test func sequentialSourceHasNoNewStream() async throws {
    let source = StreamSource(InputStream(data: Data(count: 200_000)), length: 200_000)
    try await underWay(BlobSlice(source)) { exchange, streams in
      #expect(streams(nil) == nil && streams(0) == nil)
    }
  }

  @Test func bytesBeforeTheRestCountAsSent() async throws {
    let told = Told()
    try await underWay(BlobSlice(pattern), { sent, _ in told.add(sent) }) { exchange, streams in
      _ = streams(400_000)
      exchange.sent(100_000)
      #expect(told.all.last == 500_000)
    }
  }

  /// Calls `body` while a server reads a request and does not answer. `body` is given the exchange, and a function that
  /// asks it for a new stream; nil: for that of the whole body.
  private func underWay(
    _ slice: BlobSlice, _ progress: SessionExchange.Progress? = nil,
    _ body: (SessionExchange, (Int64?) -> InputStream?) throws -> Void
  ) async throws {
    let peer = ScriptedPeer([.readHead, .hold])
    let exchange = SessionExchange(foundationPut(to: peer.port), named: "PUT", slice, Exchange(), progress)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.carryStreamedBodies()
    let upload = Task { await exchange.run(configuration) }
    await peer.wait { $0.steps.first == 1 }
    let session = URLSession(configuration: .ephemeral)
    let task = session.dataTask(with: foundationPut(to: peer.port))
    defer {
      session.invalidateAndCancel()
      upload.cancel()
    }
    try body(exchange) { offset in
      nonisolated(unsafe) var given: InputStream?
      if let offset {
        exchange.urlSession(session, task: task, needNewBodyStreamFrom: offset) { given = $0 }
      } else {
        exchange.urlSession(session, task: task, needNewBodyStream: { given = $0 })
      }
      return given
    }
  }
}

extension InputStream {
  /// Reads until a read returns no bytes.
  fileprivate func readAll() -> [UInt8] {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while case let count = read(&buffer, maxLength: buffer.count), count > 0 { bytes += buffer[..<count] }
    return bytes
  }
}

/// Gives the body of one streamed request, as an application does.
private final class BodyDelegate: NSObject, URLSessionDataDelegate {
  /// A number for each time that a body was asked for.
  let asked = Told()
  private let source: PatternSource
  private let (ends, ending) = AsyncStream<Void>.makeStream()

  init(_ source: PatternSource) { self.source = source }

  func end() async { for await _ in ends { break } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    asked.add(1)
    completionHandler(BlobInputStream.forURLLoading(source))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    ending.yield()
  }
}
