import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// tus with programs of other projects, one of which violates the protocol.
  @Suite(.serialized) struct TusPeerTests {
    let scratch = try! Scratch()

    /// aiotus resolves a `Location` without a host wrongly when it retries, so this test joins the URL itself.
    @Test(.needs(.aiotus)) func aiotusUploadsToOurServer() async throws {
      let python = try #require(Peer.aiotus.path, Peer.aiotus.reason)
      let file = try scratch.file("gallery/video.mov", (8 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let script = """
        import asyncio, sys, aiohttp, yarl
        from aiotus import core, creation
        url, path = yarl.URL(sys.argv[1]), sys.argv[2]
        async def send():
            async with aiohttp.ClientSession() as session:
                with open(path, "rb") as file:
                    place = url.join(await creation.create(session, url, file, {"filename": b"video.mov"}))
                    assert await core.offset(session, place) == 0
                    assert await core.metadata(session, place) == {"filename": b"video.mov"}
                    await core.upload_buffer(session, place, file, chunksize=1 << 20)
                    assert await core.offset(session, place) == (8 << 20) + 1
        asyncio.run(send())
        """
      let upload = try Command(python, ["-c", script, server.url, file], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// This server requires the length of a stream with its first bytes, against the protocol. A stream that fits into
    /// memory has a length.
    @Test(.needs(.resumableUpload), arguments: [[], ["--checksum", "sha1"]])
    func aPipeThatIsHeldArrivesWhereLengthsAreWantedFirst(_ options: [String]) async throws {
      let film = try scratch.file("gallery/film.mov", (20 << 20) + 1)
      let received = try scratch.folder("received")
      let peer = try await PeerServer.resumableUpload(into: received, in: scratch)
      let push = try Command(
        "bash",
        [
          "-c", "exec \"$0\" push - --name film.mov --spool-dir \"$1\" \"${@:4}\" \"$2\" < <(cat \"$3\")",
          Tool.fullbore,
          scratch.path, "tus+\(peer.url)/files", film,
        ] + options, in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      // The upload that was started without a length stays at the server, empty.
      let there = Folder(received).files().filter { $0.value > 0 }
      #expect(there.count == 1)
      for name in there.keys {
        #expect(FileManager.default.contentsEqual(atPath: film, andPath: "\(received)/\(name)"))
      }
    }

    /// `tuspyserver` ignores protocol versions, stores bytes that it has refused, and does not support chunks; in
    /// addition, connections are cut. Arriving files must be correct nevertheless.
    @Test(.needs(.tuspyserver)) func aServerThatMisbehavesHasTheRightBytes() async throws {
      try scratch.file("gallery/photo.jpg", 100_000)
      let film = try scratch.file("gallery/film.mov", (12 << 20) + 1)
      let received = try scratch.folder("received")
      let peer = try await PeerServer.tuspyserver(into: received, in: scratch)
      let port = try #require(URL(string: peer.url)?.port)
      func proxied() -> ChaosProxy {
        ChaosProxy(to: port, .init([.cutUp(after: 5 << 20), .cutUp(after: 1 << 20)]))
      }
      let files = proxied()
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "tus+http://127.0.0.1:\(files.port)/files/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let pipes = proxied()
      let piped = try Command(
        "bash",
        [
          "-c", "exec \"$0\" push - --name piped.mov \"$1\" < <(cat \"$2\")", Tool.fullbore,
          "tus+http://127.0.0.1:\(pipes.port)/files/", film,
        ], in: scratch)
      #expect(try await piped.wait() == .exited(0), "\(piped.output)\(piped.errors)")
      #expect(files.counters.faults + pipes.counters.faults > 0)
      // Each upload has a file with the server's metadata beside it; an upload whose creation had no response stays
      // empty.
      let there = Folder(received).files().filter { !$0.key.hasSuffix(".info") && $0.value > 0 }
      #expect(there.values.sorted() == [100_000, (12 << 20) + 1, (12 << 20) + 1], "\(there)")
      for (name, size) in there {
        let original = size == 100_000 ? scratch.path("gallery/photo.jpg") : film
        #expect(FileManager.default.contentsEqual(atPath: original, andPath: "\(received)/\(name)"), "\(name)")
      }
    }
  }
}

extension PeerServer {
  /// Starts the server, which receives into `folder`; uploads go to `/files/`.
  static func tuspyserver(into folder: String, in scratch: Scratch) async throws -> PeerServer {
    let python = try #require(Peer.tuspyserver.path, Peer.tuspyserver.reason)
    let script = """
      import sys, fastapi, tuspyserver, uvicorn
      app = fastapi.FastAPI()
      app.include_router(tuspyserver.create_tus_router(files_dir=sys.argv[2], prefix="files"))
      uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
      """
    return try await PeerServer(python, in: scratch) { ["-c", script, "\($0)", folder] }
  }
}
