import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Responses to a source's GET that are not the file, or have another encoding than requested.
@Suite struct RangeFormTests: RangeReading {
  /// Some servers compress everything, and some have no content.
  @Test func aResponseThatIsNotTheFileIsAnError() async throws {
    let answers: [(HTTPPeer.Reply, String)] = [
      (.init(200, ["Content-Encoding": "gzip"], [1, 2, 3]), "Content-Encoding: gzip"),
      (.init(206, ["Content-Encoding": "br", "Content-Range": "bytes 0-2/3", "ETag": "\"1\""], [1, 2, 3]), "br"),
      (.init(200, ["Content-Encoding": "identity, gzip"], [1, 2, 3]), "curl --compressed"),
      (.init(204), "204"), (.init(202, [:], [1, 2, 3]), "202"), (.init(203, [:], [1, 2, 3]), "203"),
    ]
    for (answer, wanted) in answers {
      let peer = RangePeer(.init(bytes: [])) { _, _ in answer }
      let source = HTTPRangeSource(peer.url, over: SocketTransport(), retries: 1)
      let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
      #expect(error?.message.contains(wanted) == true, "\(wanted): \(error?.message ?? "")")
    }
  }

  @Test func aFileThatIsStoredCompressedIsTakenAsItIs() async throws {
    let peer = HTTPPeer { _ in .init(200, ["Content-Encoding": "x-gzip"], [1, 2, 3]) }
    defer { peer.stop() }
    let source = HTTPRangeSource(peer.url.appending(pathBytes: "albums.tar.gz".utf8), over: SocketTransport())
    #expect(try await read(BlobSlice(source)) == [1, 2, 3])
    #expect(try await info(source).length == 3)
  }

  /// Over plain HTTP, an interruption looks like the end if the server sends neither a length nor chunks.
  @Test(arguments: [
    ("HTTP/1.1 200 OK\r\n\r\nabcde", true), ("HTTP/1.0 200 OK\r\n\r\nabcde", true),
    ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nabcde", false),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", false),
  ])
  func aNoticeSaysThatTheEndOfADownloadCannotBeVerified(_ answer: String, _ isTold: Bool) async throws {
    let peer = ScriptedPeer([.readRequest, .send(answer), .close])
    let notices = Monitor<[String]>([])
    let source = HTTPRangeSource(
      peer.url(), over: SocketTransport(), notice: { text in notices.update { $0.append(text) } })
    #expect(try await read(BlobSlice(source)) == Array("abcde".utf8))
    let told = notices.update { $0 }
    #expect(told.count == (isTold ? 1 : 0), "\(told)")
    if isTold { #expect(told.first?.contains("closed after 5 bytes") == true, "\(told)") }
  }
}
