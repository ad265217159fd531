import BlobClient
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

/// Forms through URLSession and its streams.
@Suite(.timeLimit(.minutes(1)))
struct FormTests {
  private func film(_ source: any BlobSource) -> MultipartForm {
    var form = MultipartForm()
    form.appendField("Trip", name: "title")
    form.appendPart(source, name: "file", fileName: "film.mov", mimeType: "video/quicktime")
    return form
  }

  private func bytes(_ form: MultipartForm) -> [UInt8] {
    let stream = form.bodyStream()
    stream.open()
    defer { stream.close() }
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1000))
    while case let count = stream.read(&buffer, maxLength: 1000), count > 0 { bytes += buffer[..<count] }
    #expect(stream.streamError == nil)
    return bytes
  }

  @Test func formGoesThroughURLSession() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let form = film(PatternSource(length: 1_000_001))
    let url = try #require(URL(string: "http://127.0.0.1:\(peer.port)/x"))
    let answer = try await StreamedUpload(form).send(form.urlRequest(to: url))
    #expect(answer.status == 200)
    let (seen, expected) = (peer.seen, bytes(form))
    #expect(seen.values("Content-Type") == [form.contentType])
    #expect(seen.values("Content-Length") == ["\(expected.count)"])
    #expect(Array(seen.body()) == expected)
  }

  @Test func formIsTheBodyOfAnyRequest() throws {
    let form = film(PatternSource(length: 5000))
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1/")))
    try request.setBody(form)
    #expect(request.value(forHTTPHeaderField: "Content-Type") == form.contentType)
    #expect(request.value(forHTTPHeaderField: "Content-Length") == "\(bytes(form).count)")
    #expect(request.httpBodyStream is BlobInputStream)
  }

  @Test func streamsAreMadeOfURLs() async throws {
    let peer = HTTPPeer { request in
      guard request.headers["Range"] == "bytes=0-0" else {
        return .init(206, ["ETag": "\"1\"", "Content-Range": "bytes 0-2/3"], [1, 2, 3])
      }
      return .init(206, ["ETag": "\"1\"", "Content-Range": "bytes 0-0/3"], [1])
    }
    defer { peer.stop() }
    let resolver = SourceResolver.files.addingHTTP(over: SocketTransport())
    let url = try #require(URL(string: peer.url.text + "a.mov"))
    let bytes = try await BlockingPool.shared.run { () throws in
      let stream = try BlobInputStream.forURL(url, resolver: resolver)
      stream.open()
      var buffer = [UInt8](repeating: 0, count: 10)
      let count = stream.read(&buffer, maxLength: 10)
      return Array(buffer.prefix(max(0, count)))
    }
    #expect(bytes == [1, 2, 3])
  }

  @Test(arguments: [5000, nil] as [Int64?])
  func partsCanBeInputStreams(_ length: Int64?) async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let data = Data(PatternSource(length: 5000).bytes(count: 5000))
    var form = MultipartForm(boundary: "B")
    form.appendPart(
      withInputStream: InputStream(data: data), name: "file", fileName: "a.mov", length: length,
      mimeType: "video/quicktime")
    let answer = try await SocketTransport().send(
      form.request(to: HTTPURL("http://127.0.0.1:\(peer.port)/x")!), body: BlobSlice(form), Exchange())
    #expect(answer.status == 200)
    #expect(peer.seen.values("Content-Length").isEmpty == (length == nil))
    if length != nil { #expect(Data(peer.seen.body()).range(of: data) != nil) }
  }

  @Test(arguments: [4999, 5001] as [Int64])
  func streamWithoutItsLengthFailsTheRequest(_ length: Int64) async throws {
    let peer = ScriptedPeer([.discard])
    var form = MultipartForm(boundary: "B")
    form.appendPart(
      withInputStream: InputStream(data: Data(count: 5000)), name: "file", fileName: "a.mov", length: length)
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await SocketTransport().send(
        form.request(to: HTTPURL("http://127.0.0.1:\(peer.port)/x")!), body: BlobSlice(form), Exchange())
    }
    #expect(error?.code == .source && error?.cause?.code == (length > 5000 ? .truncated : .changed))
  }

  /// The body file is uploaded as a file, as background sessions do.
  @Test func preparedFormGoesFromItsFile() async throws {
    let peer = ScriptedPeer([.readRequest, .send(answerOK), .close])
    let folder = try ScratchFolder()
    let form = film(PatternSource(length: 100_000))
    let prepared = try await form.prepare(to: folder.path.appending("body"))
    let url = try #require(URL(string: "http://127.0.0.1:\(peer.port)/x"))
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.upload(for: prepared.urlRequest(to: url), fromFile: prepared.fileURL)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(peer.seen.values("Content-Length") == ["\(prepared.length)"])
    #expect(Array(peer.seen.body()) == bytes(form))
    let stream = prepared.bodyStream()
    stream.open()
    var buffer = [UInt8](repeating: 0, count: 2)
    #expect(stream.read(&buffer, maxLength: 2) == 2 && buffer == Array("--".utf8))
  }
}
