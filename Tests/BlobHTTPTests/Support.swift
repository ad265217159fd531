import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

/// A response with a body of known length; the connection stays open.
func answer(_ status: String = "200 OK", _ body: String = "", _ more: String = "") -> ScriptedPeer.Step {
  .send("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(more)\r\n\(body)")
}

extension ScriptedPeer {
  func url(_ path: String = "/a", scheme: String = "http") -> HTTPURL {
    HTTPURL("\(scheme)://127.0.0.1:\(port)\(path)")!
  }

  var heads: String { seen.heads.joined() }

  /// The bytes that this connection received after the head.
  func body(_ connection: Int = 0) -> [UInt8] {
    let bytes = seen.received[connection]
    let end = Array("\r\n\r\n".utf8)
    guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return [] }
    return Array(bytes[(start + 4)...])
  }

  /// The bodies of the first connection's requests, concatenated; `sizes` are their lengths.
  func bodies(_ sizes: [Int]) -> [UInt8] {
    var (rest, all) = (seen.received[0][...], [UInt8]())
    let end = Array("\r\n\r\n".utf8)
    for size in sizes {
      guard let head = rest.indices.first(where: { rest[$0...].starts(with: end) }) else { break }
      all += rest[(head + 4)...].prefix(size)
      rest = rest[(head + 4)...].dropFirst(size)
    }
    return all
  }
}

extension Transport {
  func put(_ url: HTTPURL, _ source: any BlobSource, length: Int64? = nil) async throws(TransportError) -> HTTPResponse
  {
    try await send(HTTPRequest("PUT", url), body: BlobSlice(source, length: length), Exchange())
  }

  func get(_ url: HTTPURL, _ method: String = "GET") async throws(TransportError) -> HTTPResponse {
    try await send(HTTPRequest(method, url), body: nil, Exchange())
  }
}

/// Returns the error of a send that must fail.
func failure(
  _ location: SourceLocation = #_sourceLocation, _ body: () async throws(TransportError) -> HTTPResponse
) async -> TransportError {
  do throws(TransportError) {
    let response = try await body()
    Issue.record("status \(response.status) came, where an error should have", sourceLocation: location)
    return TransportError(.badResponse, "")
  } catch {
    return error
  }
}

/// A counter for several threads.
final class Tally: Sendable {
  private let count = Atomic(0)
  var value: Int { count.load(ordering: .relaxed) }
  func add(_ number: Int) { count.add(number, ordering: .relaxed) }
}

/// A source of bytes in a list, with length nil by default. Each read returns one piece if the buffer has room for it.
/// `before` is called for each read, on the worker's thread.
struct ListSource: BlobSource {
  var pieces: [[UInt8]]
  var length: Int64?
  var access: BlobAccess = .random
  var before: @Sendable () -> Void = {}

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: length) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader { Reader(self) }

  private final class Reader: BlobReader {
    let source: ListSource
    var rest: ArraySlice<[UInt8]>
    init(_ source: ListSource) {
      self.source = source
      rest = source.pieces[...]
    }
    var info: BlobInfo { BlobInfo(length: source.length) }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      source.before()
      guard let piece = rest.popFirst() else { return 0 }
      let count = min(piece.count, buffer.count)
      buffer.copyBytes(from: piece.prefix(count))
      if count < piece.count { rest = [Array(piece.dropFirst(count))] + rest }
      return count
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
}

/// Whether a socket in state SYN_SENT connects to this port. proc(5), /proc/net/tcp.
func isConnecting(to port: Int) -> Bool {
  var remote = String(port, radix: 16, uppercase: true)
  while remote.count < 4 { remote = "0" + remote }
  return textFile("/proc/net/tcp").contains(" 0100007F:\(remote) 02 ")
}
