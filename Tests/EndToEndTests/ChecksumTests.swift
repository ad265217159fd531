import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// `push --checksum`: changed bytes are detected in transit, and unchecked bytes are never reported as checked.
  @Suite(.serialized) struct ChecksumTests {
    let scratch = try! Scratch()

    /// Uses a proxy that flips a bit on each connection.
    @Test(arguments: [("tus", "sha1"), ("tus", "crc32c"), ("resumable", "sha256"), ("put", "sha512")])
    func changedBytesAreSentAgain(_ uploadProtocol: String, _ algorithm: String) async throws {
      try scratch.file("gallery/small.jpg", 1 << 20)
      try scratch.file("gallery/video.mov", 20 << 20)
      let server = try await ServeProcess.start(in: scratch)
      // There are more faults than connections.
      let faults = [ChaosProxy.Fault](repeating: .flip(at: 700_000), count: 16)
      let proxy = ChaosProxy(to: server.port, ChaosProxy.Schedule(faults))
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "\(uploadProtocol)+http://127.0.0.1:\(proxy.port)/", "--checksum", algorithm,
        "--header", "Host: 127.0.0.1:\(server.port)", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(proxy.counters.faults > 0, "the proxy changed nothing")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// A pipe is not read ahead for its digest: the digest follows each part.
    @Test func aPipesDigestFollowsIt() async throws {
      let file = try scratch.file("gallery/film.mov", (40 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let proxy = ChaosProxy(to: server.port, ChaosProxy.Schedule([.flip(at: 15 << 20), .flip(at: 3 << 20)]))
      let push = try Command(
        "bash",
        [
          "-c", "exec \"$0\" push - --checksum sha256 --header \"$2\" \"$1\" < <(cat \"$3\")", Tool.fullbore,
          "tus+http://127.0.0.1:\(proxy.port)/film.mov", "Host: 127.0.0.1:\(server.port)", file,
        ], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(proxy.counters.faults > 0, "the proxy changed nothing")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// Content at a URL is fetched once, and its digest follows each part. One part is corrupted in transit.
    @Test(.needs(.resumableUpload)) func aURLsDigestFollowsItToSomeoneElsesServer() async throws {
      try scratch.file("received/film.mov", (20 << 20) + 1)
      let origin = try await ServeProcess.start(in: scratch)
      let arrived = try scratch.folder("arrived")
      let peer = try await PeerServer.resumableUpload(into: arrived, in: scratch)
      // The first request uses one connection, and bodies with a trailing digest use another.
      let proxy = ChaosProxy(
        to: try #require(URL(string: peer.url)?.port), ChaosProxy.Schedule([.flip(at: 5 << 20), .flip(at: 5 << 20)]))
      let (end, push) = try await fullbore(
        "push", "\(origin.url)film.mov", "tus+http://127.0.0.1:\(proxy.port)/files", "--checksum",
        "sha1", "--parts-at-once", "1", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(proxy.counters.faults > 0)
      let there = Folder(arrived).files()
      #expect(there.count == 1)
      for name in there.keys {
        #expect(
          FileManager.default.contentsEqual(
            atPath: scratch.path("received/film.mov"), andPath: "\(arrived)/\(name)"))
      }
    }

    /// The server is killed in the middle of parts, whose bytes were not yet checked.
    @Test func aKilledServerForgetsWhatWasNotChecked() async throws {
      let file = try scratch.file("gallery/video.mov", 40 << 20)
      var server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", file, "tus+\(server.url)", "--checksum", "crc32c", "--bwlimit", "16M", "--retries", "100", in: scratch)
      for wanted in [3 << 20, 13 << 20, 22 << 20] {
        try await until("more has arrived") { server.folder.unfinished() > wanted || push.end != nil ? true : nil }
        server.command.kill(SIGKILL)
        try await server.command.wait()
        let store = server.folder.path + "/.fullbore"
        #expect(try FileManager.default.contentsOfDirectory(atPath: store).contains { $0.hasSuffix(".mark") })
        server = try await server.startAgain(in: scratch)
        #expect(server.folder.unfinished() % (8 << 20) == 0, "it holds \(server.folder.unfinished()) bytes")
      }
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.resumableUpload)) func aTusServerOfSomeoneElseChecks() async throws {
      try scratch.file("gallery/small.jpg", 50_000)
      try scratch.file("gallery/video.mov", 20 << 20)
      let received = try scratch.folder("received")
      let peer = try await PeerServer.resumableUpload(into: received, in: scratch)
      let faults = [ChaosProxy.Fault](repeating: .flip(at: 5 << 20), count: 4)
      let proxy = ChaosProxy(to: try #require(URL(string: peer.url)?.port), ChaosProxy.Schedule(faults))
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "tus+http://127.0.0.1:\(proxy.port)/files", "--checksum", "sha1", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(proxy.counters.faults > 0)
      Folder(scratch.path("gallery")).expectSameContents(in: Folder(received))
    }

    @Test(.needs(.resumableUpload)) func theErrorNamesAChecksumThatTheServerDoesNotOffer() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let peer = try await PeerServer.resumableUpload(into: try scratch.folder("received"), in: scratch)
      let (end, push) = try await fullbore("push", file, "\(peer.url)/files", "--checksum", "blake2b512", in: scratch)
      #expect(end == .exited(3))
      #expect(push.errors.contains("blake2b512 was asked for") && push.errors.contains("sha1"), "\(push.errors)")
    }

    @Test func putIsRefused() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let (end, push) = try await fullbore("push", file, "put+http://127.0.0.1:1/", "--checksum", "sha1", in: scratch)
      #expect(end == .exited(2))
      #expect(push.errors.contains("--verify"), "\(push.errors)")
    }
  }
}
