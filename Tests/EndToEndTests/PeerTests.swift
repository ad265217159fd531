import Foundation
import Testing

extension EndToEnd {
  /// Fullbore's client with servers of other projects, and its server with their clients.
  @Suite(.serialized) struct PeerTests {
    let scratch = try! Scratch()

    private func makeGallery() throws -> Folder {
      for number in 0..<30 { try scratch.file("gallery/2026/IMG \(number).jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", 32 << 20)
      return Folder(scratch.path("gallery"))
    }

    @Test(.needs(.nginx)) func nginxReceivesAFolderByPut() async throws {
      let gallery = try makeGallery()
      let received = try scratch.folder("received")
      let nginx = try await PeerServer.nginx(into: received, in: scratch)
      let (end, push) = try await fullbore("push", gallery.path + "/", "put+\(nginx.url)/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: Folder(received))
    }

    @Test(.needs(.nginx)) func nginxIsFoundToTakePut() async throws {
      let gallery = try makeGallery()
      let received = try scratch.folder("received")
      let nginx = try await PeerServer.nginx(into: received, in: scratch)
      let (end, push) = try await fullbore("push", gallery.path + "/", "\(nginx.url)/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: Folder(received))
    }

    @Test(.needs(.resumableUpload), arguments: ["tus+", ""])
    func tusServerReceivesAFolder(_ uploadProtocol: String) async throws {
      let gallery = try makeGallery()
      let received = try scratch.folder("received")
      let peer = try await PeerServer.resumableUpload(into: received, in: scratch)
      let (end, push) = try await fullbore(
        "push", gallery.path + "/", "\(uploadProtocol)\(peer.url)/files", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSameContents(in: Folder(received))
    }

    /// The push resumes with only the journal and the server's `Upload-Offset`.
    @Test(.needs(.resumableUpload)) func killedPushGoesOnAtATusServer() async throws {
      let file = try scratch.file("gallery/video.mov", 24 << 20)
      let received = try scratch.folder("received")
      let peer = try await PeerServer.resumableUpload(into: received, in: scratch)
      var bytes = 0
      for _ in 0..<3 {
        // The upload is in parts, because this server stores a request's body only once it has all of it.
        let push = try Command.fullbore(
          "push", "--bwlimit", "8M", "--part-size", "1M", file, "tus+\(peer.url)/files", in: scratch)
        let wanted = bytes + (3 << 20)
        try await until("more has arrived") { Folder(received).received() > wanted || push.end != nil ? true : nil }
        push.kill(SIGKILL)
        #expect(try await push.wait() == .killed(by: SIGKILL))
        bytes = Folder(received).received()
      }
      let (end, push) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSameContents(in: Folder(received))
    }

    /// Also with checksums: SHA-1 of each part.
    @Test(.needs(.tuspy), arguments: ["False", "True"])
    func tuspyUploadsToOurServer(_ checksum: String) async throws {
      let python = try #require(Peer.tuspy.path, Peer.tuspy.reason)
      let file = try scratch.file("gallery/video.mov", (8 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let script = """
        import sys
        from tusclient import client
        url, path = sys.argv[1:]
        client.TusClient(url).uploader(
            path, chunk_size=1 << 20, metadata={"filename": "video.mov"}, upload_checksum=\(checksum)).upload()
        """
      let upload = try Command(python, ["-c", script, server.url, file], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// Four parts at once, each PATCH with its checksum, also if PATCH must be sent as POST.
    @Test(.needs(.resumableUpload, .tuspy), arguments: ["False", "True"])
    func partsSentAtOnceBecomeOneFile(_ isDisguised: String) async throws {
      let python = try #require(Peer.tuspy.path, Peer.tuspy.reason)
      let file = try scratch.file("gallery/video.mov", (32 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let script = """
        import sys
        from resumable_upload import TusClient
        url, path = sys.argv[1:]
        client = TusClient(url, chunk_size=1 << 20, checksum=True, override_patch_method=\(isDisguised))
        client.upload_file(path, metadata={"filename": "video.mov"}, parallel_uploads=4)
        """
      let upload = try Command(python, ["-c", script, server.url, file], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.curl)) func curlUploadsToOurServerAndReadsBack() async throws {
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      let file = try scratch.file("gallery/video.mov", (64 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let upload = try Command(curl, ["-sSf", "-T", file, server.url], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)

      let copy = scratch.path("copy.mov")
      let range = try Command(curl, ["-sSf", "-r", "1000-50000000", "-o", copy, server.url + "video.mov"], in: scratch)
      #expect(try await range.wait() == .exited(0), "\(range.errors)")
      let part = try Data(contentsOf: URL(fileURLWithPath: file))[1000...50_000_000]
      #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == part)
    }

    @Test(.needs(.curl)) func curlSendsAForm() async throws {
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      let film = try scratch.file("gallery/a film; \"x\".mov", (64 << 20) + 1)
      let picture = try scratch.file("gallery/\u{e4}.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      for arguments in [[], ["--form-escape"], ["-H", "Transfer-Encoding: chunked"]] {
        let upload = try Command(
          curl,
          ["-sS", "--fail-with-body"] + arguments + [
            "-F", "title=Trip", "-F", "f=@\"\(film.replacing("\"", with: "\\\""))\"", "-F",
            "f=@\(picture);type=image/jpeg", server.url,
          ], in: scratch)
        #expect(try await upload.wait() == .exited(0), "\(upload.output)\(upload.errors)")
        Folder(scratch.path("gallery")).expectSame(as: server.folder)
      }
    }

    @Test(.needs(.tuspy), arguments: ["requests", "aiohttp"])
    func pythonSendsAForm(_ library: String) async throws {
      let python = try #require(Peer.tuspy.path, Peer.tuspy.reason)
      let film = try scratch.file("gallery/film.mov", (16 << 20) + 1)
      let picture = try scratch.file("gallery/\u{e4} \u{1F600}.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      let script = """
        import asyncio, os, sys
        library, url, *paths = sys.argv[1:]
        if library == "requests":
            import requests
            files = [("f", (os.path.basename(path), open(path, "rb"), "image/jpeg")) for path in paths]
            answer = requests.post(url, data={"title": "Trip"}, files=files)
            assert answer.status_code == 201, answer.text
        else:
            import aiohttp
            async def send():
                form = aiohttp.FormData(quote_fields=False)
                form.add_field("title", "Trip")
                for path in paths:
                    form.add_field("f", open(path, "rb"), filename=os.path.basename(path))
                async with aiohttp.ClientSession() as session, session.post(url, data=form) as answer:
                    assert answer.status == 201, await answer.text()
            asyncio.run(send())
        """
      let upload = try Command(python, ["-c", script, library, server.url, film, picture], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// curl does not know the length of the stream either.
    @Test(.needs(.curl)) func curlUploadsAStreamToOurServer() async throws {
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      let file = try scratch.file("gallery/stream.bin", (8 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let upload = try Command(
        "bash", ["-c", "cat \"$1\" | \"$0\" -sSf -T - \"$2\"", curl, file, server.url + "stream.bin"], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.photographs), arguments: ["put+", "tus+", "resumable+"])
    func photographsArriveAsTheyWere(_ uploadProtocol: String) async throws {
      let source = Folder(try #require(Peer.photographs.path, Peer.photographs.reason))
      try scratch.folder("photographs")
      let names = source.files().keys.filter { $0.hasSuffix(".png") || $0.hasSuffix(".jpg") }
      #expect(names.count > 10)
      for name in names {
        try FileManager.default.copyItem(
          atPath: "\(source.path)/\(name)", toPath: scratch.path("photographs/\(name)"))
      }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", scratch.path("photographs"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("photographs")).expectSame(as: Folder(server.folder.path + "/photographs"))
    }
  }
}
