import BlobHTTP
import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// A request of an older version, which a proxy has held back, arrives after `push --overwrite` has replaced the file by a
  /// newer version.
  @Suite(.serialized) struct LateRequestTests {
    let scratch = try! Scratch()

    /// Pushes a version to `url` until its last request is held, kills the push, and pushes another version, which must
    /// arrive. Then the request of the first version is delivered. Returns the status of its response.
    private func pushTwice(
      through proxy: HoldingProxy, _ options: [String], to url: String, environment: [String: String] = [:],
      _ contents: () async throws -> Data?
    ) async throws -> Int {
      let file = try scratch.file("x.bin", 5000, seed: 1)
      let arguments = ["push", "--overwrite"] + options + [file, url]
      let first = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
      try await until("the request of the first version is held") { proxy.isHolding ? true : nil }
      first.kill(SIGKILL)
      try await first.wait()
      // The source is a new file, as after an edit.
      try FileManager.default.removeItem(atPath: file)
      _ = try scratch.file("x.bin", 5000, seed: 2)
      let newer = try Data(contentsOf: URL(fileURLWithPath: file))
      let second = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
      #expect(try await second.wait() == .exited(0), "\(second.output)\(second.errors)")
      #expect(try await contents() == newer, "\(proxy.passed)")
      let status = try await proxy.deliver()
      #expect(try await contents() == newer, "the late request was answered \(status): \(proxy.passed)")
      return status
    }

    private func isLast(_ request: HTTPPeer.Request) -> Bool {
      switch request.method {
      case "PUT": request.path.hasSuffix("/x.bin")
      case "POST": request.headers["Upload-Length"] != nil
      default: false
      }
    }

    @Test(arguments: ["", "tus+", "put+", "resumable+"], [true, false])
    func anOlderVersionStaysAway(_ uploadProtocol: String, _ isThere: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch, "--host", "127.0.0.1")
      if isThere { _ = try scratch.file("received/in/x.bin", 700) }
      let proxy = HoldingProxy(before: server.port) { isLast($0) }
      let status = try await pushTwice(
        through: proxy, [], to: "\(uploadProtocol)http://127.0.0.1:\(proxy.port)/in/"
      ) { FileManager.default.contents(atPath: scratch.path("received/in/x.bin")) }
      #expect(status == 412)
    }

    @Test(.needs(.apache), arguments: [true, false])
    func anOlderVersionStaysAwayFromApache(_ isThere: Bool) async throws {
      let folder = try scratch.folder("received")
      if isThere {
        let file = try scratch.file("received/x.bin", 700)
        // The ETag of a file that was written within the last second is weak.
        let hourAgo = Date(timeIntervalSinceNow: -3600)
        try FileManager.default.setAttributes(
          [.posixPermissions: 0o666, .modificationDate: hourAgo], ofItemAtPath: file)
      }
      let apache = try await DavServer.apache.start(into: folder, in: scratch)
      let port = try #require(URL(string: apache.url)?.port)
      let proxy = HoldingProxy(before: port) { isLast($0) }
      let status = try await pushTwice(through: proxy, [], to: "put+http://127.0.0.1:\(proxy.port)/") {
        FileManager.default.contents(atPath: scratch.path("received/x.bin"))
      }
      #expect(status == 412)
    }

    @Test(arguments: [true, false]) func anOlderObjectStaysAway(_ isThere: Bool) async throws {
      let peer = S3Peer()
      if isThere { peer.change { $0.objects["in/x.bin"] = S3PeerObject(bytes: [1, 2, 3], tag: "\"x\"") } }
      let proxy = HoldingProxy(before: peer.port) { isLast($0) }
      let status = try await pushTwice(
        through: proxy, ["--endpoint", "http://127.0.0.1:\(proxy.port)"], to: "s3://media/in/",
        environment: S3Peer.environment
      ) { peer.objects["in/x.bin"].map { Data($0.bytes) } }
      #expect(status == 412)
    }

    @Test(.needs(.moto, .curl), arguments: [true, false])
    func anOlderObjectStaysAwayFromMoto(_ isThere: Bool) async throws {
      let moto = try await PeerServer.moto(in: scratch)
      try await moto.put("/media", in: scratch)
      if isThere { try await moto.put("/media/in/x.bin", in: scratch) }
      let port = try #require(URL(string: moto.url)?.port)
      let proxy = HoldingProxy(before: port) { isLast($0) }
      let status = try await pushTwice(
        through: proxy, ["--endpoint", "http://127.0.0.1:\(proxy.port)"], to: "s3://media/in/",
        environment: S3Peer.environment
      ) {
        let place = scratch.newPath("object")
        let curl = try #require(Peer.curl.path, Peer.curl.reason)
        // This server does not check signatures, and refuses requests without one.
        let key =
          "Authorization: AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
        let get = try Command(
          curl, ["-sSf", "-H", key + "Signature=0", "-o", place, moto.url + "/media/in/x.bin"], in: scratch)
        #expect(try await get.wait() == .exited(0), "\(get.errors)")
        return FileManager.default.contents(atPath: place)
      }
      #expect(status == 412)
    }

    /// The first version has been removed at the source, since it was proved there: a late request must not bring it back.
    @Test func nothingIsLostAfterItsSourceWasDeleted() async throws {
      let server = try await ServeProcess.start(in: scratch, "--host", "127.0.0.1")
      let proxy = HoldingProxy(before: server.port) { isLast($0) }
      _ = try await pushTwice(
        through: proxy, ["--verify", "--delete-after-verify"], to: "put+http://127.0.0.1:\(proxy.port)/in/"
      ) { FileManager.default.contents(atPath: scratch.path("received/in/x.bin")) }
      #expect(!FileManager.default.fileExists(atPath: scratch.path("x.bin")))
    }
  }
}
