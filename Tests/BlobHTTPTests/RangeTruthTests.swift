import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Servers whose range responses are wrong, or too small to be useful.
@Suite(.timeLimit(.minutes(3))) struct RangeTruthTests: RangeReading {
  private let bytes = PatternSource(length: 40_000).bytes(count: 40_000)

  private func failure(_ source: HTTPRangeSource) async throws -> BlobError {
    let error = await #expect(throws: BlobError.self) { () async throws in _ = try await read(BlobSlice(source)) }
    return try #require(error)
  }

  /// A server that returns `last(first)` as the last byte of each range, and `count` bytes.
  private func server(
    _ last: @escaping @Sendable (Int) -> Int, count: @escaping @Sendable (Int) -> Int
  ) -> RangePeer {
    RangePeer(.init(bytes: bytes)) { [bytes] _, request in
      guard let range = request.headers["Range"], range != "bytes=0-0" else { return nil }
      let first = Int(range.dropFirst(6).prefix { $0 != "-" })!
      return .init(
        206, ["ETag": "\"1\"", "Content-Range": "bytes \(first)-\(last(first))/\(bytes.count)"],
        Array(bytes[first...].prefix(count(first))))
    }
  }

  /// Such bytes may belong to any offset.
  @Test(arguments: [5000, -5000]) func anAnswerOfOtherBytesThanItSaysIsRefused(_ surplus: Int) async throws {
    let peer = server({ $0 + 9_999 }, count: { _ in 10_000 + surplus })
    let error = try await failure(HTTPRangeSource(peer.url, over: SocketTransport()))
    #expect(error.code == .io && error.message.contains("other bytes than its Content-Range"), "\(error.message)")
  }

  /// rclone's S3 server answers 200 to every range. The first answer has one byte, which is not the whole file.
  @Test func aRangeWithStatus200IsARange() async throws {
    let peer = RangePeer(.init(bytes: bytes)) { [bytes] _, request in
      guard let range = request.headers["Range"] else { return nil }
      let ends = range.dropFirst(6).split(separator: "-").map { Int($0)! }
      let last = ends.count > 1 ? ends[1] : bytes.count - 1
      return .init(
        200, ["ETag": "\"1\"", "Content-Range": "bytes \(ends[0])-\(last)/\(bytes.count)"], Array(bytes[ends[0]...last])
      )
    }
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    #expect(try await read(BlobSlice(source)) == bytes)
    #expect(try await read(BlobSlice(source, start: 30_000)) == Array(bytes[30_000...]))
  }

  /// A server may answer with the requested byte alone, and not say so. It looks like a file of one byte.
  @Test(arguments: [1, 40_000]) func aByteThatIsNotSaidToBeARangeIsNotTheFile(_ length: Int) async throws {
    let bytes = Array(bytes[..<length])
    let peer = RangePeer(.init(bytes: bytes)) { _, request in
      request.headers["Range"].map { _ in .init(200, ["ETag": "\"1\""], [bytes[0]]) }
    }
    #expect(try await read(BlobSlice(HTTPRangeSource(peer.url, over: SocketTransport()))) == bytes)
  }

  /// RFC 9110 §15.3.7.2: such a response has no Content-Range of its own.
  @Test(arguments: ["multipart/byteranges; boundary=x", "Multipart/ByteRanges"])
  func anAnswerInPartsIsRefused(_ type: String) async throws {
    let peer = RangePeer(.init(bytes: bytes)) { [bytes] _, request in
      guard let range = request.headers["Range"], range != "bytes=0-0" else { return nil }
      let first = Int(range.dropFirst(6).prefix { $0 != "-" })!
      return .init(
        206,
        ["ETag": "\"1\"", "Content-Range": "bytes \(first)-\(bytes.count - 1)/\(bytes.count)", "Content-Type": type],
        Array(bytes[first...]))
    }
    let error = try await failure(HTTPRangeSource(peer.url, over: SocketTransport()))
    #expect(error.code == .io && error.message.contains("206"), "\(error.message)")
  }

  /// In the second response the length is known only at its end.
  @Test func anAnswerWithMoreThanItsRangeIsRefused() async throws {
    let head = "HTTP/1.1 206 Partial\r\nETag: \"1\"\r\nContent-Range: bytes"
    let peer = ScriptedPeer([
      .readRequest, .send("\(head) 0-0/8\r\nContent-Length: 1\r\n\r\nx"),
      .readRequest, .send("\(head) 0-3/8\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n"), .hold,
    ])
    let error = try await failure(HTTPRangeSource(peer.url(), over: SocketTransport(.init(connections: 1))))
    #expect(error.code == .io && error.message.contains("more content than the 4 bytes"), "\(error.message)")
  }

  @Test func aServerMayGiveLessThanIsAskedFor() async throws {
    let peer = server({ [bytes] in min($0 + 7_999, bytes.count - 1) }, count: { _ in 8_000 })
    #expect(try await read(BlobSlice(HTTPRangeSource(peer.url, over: SocketTransport()))) == bytes)
  }

  @Test func aPartIsNotTheWholeThatWasAskedFor() async throws {
    let peer = RangePeer(.init(bytes: bytes)) { [bytes] _, _ in
      .init(206, ["Content-Range": "bytes 5-9/\(bytes.count)"], Array(bytes[5...9]))
    }
    let error = try await failure(HTTPRangeSource(peer.url, over: SocketTransport()))
    #expect(error.code == .io, "\(error.message)")
  }

  /// Otherwise there would be as many requests as the file has bytes.
  @Test func aServerThatGivesNextToNothingIsGivenUp() async throws {
    let peer = server({ $0 }, count: { _ in 1 })
    let error = try await failure(HTTPRangeSource(peer.url, over: SocketTransport(), retries: 3))
    #expect(error.code == .io && error.message.contains("after 4 attempts"), "\(error.message)")
    #expect(peer.seen.count == 5)
  }
}
