import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@Suite(.timeLimit(.minutes(3))) struct RangeSecretTests: RangeReading {
  /// The message about a redirect contains no secret of the query or of the header fields that the server repeats.
  @Test func theErrorOfARedirectShowsNoSecret() async throws {
    for place in ["http://127.0.0.1:1/s3krT0ken", "http://127.0.0.1:1/x/s3kr%540ken", "http://127.0.0.1:1/bearer-word"]
    {
      let peer = RangePeer(.init(bytes: [])) { _, _ in .init(302, ["Location": place]) }
      let url = try #require(HTTPURL("\(peer.url)?sig=s3krT0ken"))
      let source = HTTPRangeSource(
        url, over: SocketTransport(), headers: ["Authorization": "Bearer bearer-word"], retries: 0)
      let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
      let message = try #require(error).message
      #expect(!message.contains("ken") && !message.contains("bearer-word"), "\(message)")
      #expect(message.contains("repeats a credential") && message.contains("connect"), "\(message)")
    }
  }

  /// The journal stores the version of a source.
  @Test func aVersionThatRepeatsASecretIsNoVersion() async throws {
    let peer = RangePeer(.init(bytes: [1, 2, 3], headers: ["ETag": "\"bearer-word\""]))
    let source = HTTPRangeSource(
      peer.url, over: SocketTransport(), headers: ["Authorization": "Bearer bearer-word"], retries: 0)
    #expect(try await read(BlobSlice(source)) == [1, 2, 3])
    #expect(peer.seen.allSatisfy { $0["If-Range"] == nil })
  }

  /// The word is part of the URL that the user gave, and was not added by a server.
  @Test func theURLThatWasGivenIsShown() async throws {
    let url = try #require(HTTPURL("http://127.0.0.1:1/holiday?name=holiday"))
    let source = HTTPRangeSource(url, over: SocketTransport(), retries: 0)
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    #expect(error?.message.contains("GET http://127.0.0.1:1/holiday: connection refused") == true, "\(error as Any)")
  }
}
