import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

// Slices and parts of such a source.
extension RangeSourceTests {
  /// As many readers as the transport has connections are at the end of their parts, and each asks the server once
  /// more.
  @Test func readersAtTheEndsOfTheirPartsDoNotWaitForEachOther() async throws {
    let part = 1 << 20
    // More than the sockets hold, so a response up to the end of the file would stay in flight.
    let peer = RangePeer(.init(bytes: [UInt8](repeating: 7, count: 64 << 20)))
    let source = HTTPRangeSource(
      peer.url, over: SocketTransport(.init(connections: 2, adapts: false)), readAhead: 64 << 10)
    let (cancel, begun) = (Cancellation(), Monitor(0))
    // If readers wait for each other, this deadline makes the test fail instead of hanging.
    let deadline = Task {
      try await Task.sleep(for: .seconds(8))
      cancel.cancel()
    }
    defer { deadline.cancel() }
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<2 {
        group.addTask {
          try await rangeThreads.run { () throws -> Int in
            let slice = BlobSlice(source, start: Int64(number * part), length: Int64(part))
            let reader = try slice.open(cancel)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
            defer { buffer.deallocate() }
            var count = try reader.read(into: buffer)
            begun.update { $0 += 1 }
            _ = begun.wait(atMost: .seconds(8)) { $0 == 2 ? true : nil }
            while case let more = try reader.read(into: buffer), more > 0 { count += more }
            return count
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(counts == [part, part])
  }

  @Test func slicesOfItAreBodies() async throws {
    let pattern = PatternSource(length: 1_000_000)
    let peer = RangePeer(.init(bytes: pattern.bytes(count: 1_000_000)))
    let target = ScriptedPeer([.readRequest, answer()])
    let source = HTTPRangeSource(peer.url, over: SocketTransport())
    let sending = SocketTransport()
    _ = try await sending.send(
      HTTPRequest("PUT", target.url()), body: BlobSlice(source, start: 500, length: 900_000), Exchange())
    #expect(target.body() == pattern.bytes(at: 500, count: 900_000))
  }

  @Test func resolverKnowsItsURLs() async throws {
    let peer = RangePeer(.init(bytes: [1, 2, 3]))
    let resolver = SourceResolver.files.addingHTTP(over: SocketTransport())
    #expect(try await read(BlobSlice(try resolver.source(for: peer.url.text))) == [1, 2, 3])
    #expect(throws: BlobError.self) { _ = try resolver.source(for: "http://user:secret@host/") }
  }
}
