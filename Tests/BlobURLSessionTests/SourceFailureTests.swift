import BlobHTTP
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

/// A failed source is reported with its own reason, and no server accepts the body as complete.
@Suite(.timeLimit(.minutes(1)))
struct SourceFailureTests {
  private let transport = URLSessionTransport()
  private static let card = BlobError(.io, "the card was pulled out", errno: 5)

  @Test(arguments: [0, 1, 2_000_000] as [Int64], [true, false])
  func ownErrorIsKept(at byte: Int64, knowsLength: Bool) async throws {
    let served = try ServedFolder()
    let pattern = PatternSource(length: 4 << 20, knowsLength: knowsLength)
    let error = await failure(FaultySource(pattern, .fail(at: byte, Self.card)), at: served)
    #expect(error?.code == .source && error?.cause?.code == .io && error?.cause?.errno == 5)
    #expect(error?.message.contains("the card was pulled out") == true)
    #expect(served.contents(of: "video") == nil)
  }

  @Test(arguments: [0, 1, 3_000_000] as [Int64])
  func truncatedSourceNeverLooksComplete(at byte: Int64) async throws {
    let served = try ServedFolder()
    let error = await failure(FaultySource(PatternSource(length: 4 << 20), .truncate(at: byte)), at: served)
    #expect(error?.code == .source && error?.cause?.code == .truncated)
    #expect(served.contents(of: "video") == nil)
  }

  @Test(arguments: [0, 1, 2_000_000] as [Int64])
  func changeThatIsSeenAtTheEndIsAnError(length: Int64) async throws {
    let served = try ServedFolder()
    let error = await failure(FaultySource(PatternSource(length: length), .changedAtEnd), at: served)
    #expect(error?.code == .source && error?.cause?.code == .changed)
    #expect(served.contents(of: "video") == nil)
  }

  @Test func openingThatFailsIsTheSource() async throws {
    let served = try ServedFolder()
    let error = await failure(FaultySource(PatternSource(length: 1000), .failOpening(Self.card)), at: served)
    #expect(error?.code == .source && error?.cause?.errno == 5)
  }

  @Test func asynchronousStreamIsRefusedBeforeAByteIsSent() throws {
    var request = URLRequest(url: URL(string: "http://127.0.0.1/")!)
    let stream = BlobInputStream(PatternSource(length: 10), asynchronous: true)
    let error = #expect(throws: BlobError.self) { () throws in try request.setBody(stream, length: 10) }
    #expect(error?.code == .unsupported && request.httpBodyStream == nil)
    #expect(request.value(forHTTPHeaderField: "Content-Length") == nil)
  }

  private func failure(_ source: any BlobSource, at served: ServedFolder) async -> TransportError? {
    let request = HTTPRequest("PUT", served.endpoint.appending(pathBytes: "video".utf8))
    return await #expect(throws: TransportError.self) { () async throws in
      _ = try await transport.send(request, body: BlobSlice(source), Exchange())
    }
  }
}
