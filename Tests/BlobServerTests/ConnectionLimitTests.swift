import Blobs
import Platform
import TestSupport
import Testing

@testable import BlobServer

struct ConnectionLimitTests {
  @Test func noLimitOfFilesIsExceeded() {
    for files in 0...70_000 {
      let most = ConnectionLimit.connections(opening: files, workers: 8)
      #expect(most == 0 || ConnectionLimit.files(for: most, workers: 8) <= files)
      #expect(ConnectionLimit.files(for: most + 1, workers: 8) > files, "there is room for one more")
    }
  }

  /// A loop whose places were all taken accepts again when one of them is free, and does not wait for the next sweep.
  @Test func aFreePlaceIsTakenAtOnce() throws {
    let folder = try TestFolder()
    var options = ServerOptions(folder: folder.path, port: 0)
    (options.idleTimeout, options.headTimeout) = (.seconds(3600), .seconds(3600))
    let server = try Server(options, mostConnections: 1)
    defer { server.stop(grace: .zero) }
    let start = ContinuousClock.now
    for _ in 0..<10 {
      var first: RawHTTPClient? = try RawHTTPClient(port: server.port)
      #expect(try (first?.ask("PUT", "/x", body: [1]).status ?? 500) < 300)
      let second = try RawHTTPClient(port: server.port)
      try second.head("PUT", "/x", [("Content-Length", "1")])
      try second.send([1])
      #expect(server.connectionCount == 1)
      first = nil
      #expect(try second.answer().status < 300)
    }
    // There is one sweep a second, and each of the clients would wait for the next one.
    #expect(.now - start < .seconds(5))
  }
}
