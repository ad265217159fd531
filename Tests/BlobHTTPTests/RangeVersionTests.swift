import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

/// Requests for the rest of the version whose download was begun.
@Suite struct RangeVersionTests: RangeReading {
  /// The server's ETags are weak. `If-Range` must not contain a date in that case. RFC 9110 §13.1.5.
  @Test(arguments: [nil, "Last-Modified", "ETag"])
  func aWeakETagIsHelpedByAnOldDate(_ changes: String?) async throws {
    let pattern = PatternSource(length: 1_000_000)
    let headers: HTTPHeaders = [
      "ETag": "W/\"1\"", "Last-Modified": "Sat, 01 Jan 2022 00:00:00 GMT", "Date": "Sat, 01 Jan 2022 00:01:00 GMT",
    ]
    let holder = Monitor<RangePeer?>(nil)
    let peer = RangePeer(.init(bytes: pattern.bytes(count: 1_000_000), headers: headers)) { number, _ in
      // The first requests are the probe and the range that is cut; then the file may be replaced.
      if number == 2, let changes {
        var other = headers
        other[changes] = changes == "ETag" ? "W/\"2\"" : "Sat, 01 Jan 2022 00:00:01 GMT"
        holder.update { $0 }?.replace(by: .init(bytes: pattern.bytes(count: 1_000_000).reversed(), headers: other))
      }
      return nil
    }
    holder.update { $0 = peer }
    defer { holder.update { $0 = nil } }
    let proxy = ChaosProxy(to: peer.peer.port, .init([.cutDown(after: 500_000)]))
    let source = HTTPRangeSource(HTTPURL("http://127.0.0.1:\(proxy.port)/a")!, over: SocketTransport())
    do {
      let bytes = try await read(BlobSlice(source))
      #expect(changes == nil && bytes == pattern.bytes(count: 1_000_000))
    } catch let error as BlobError {
      #expect(changes != nil && error.code == .changed, "\(error)")
    }
    #expect(peer.seen.contains { $0["If-Unmodified-Since"] != nil } && peer.seen.allSatisfy { $0["If-Range"] == nil })
  }
}
