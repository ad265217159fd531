import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// WebDAV with servers of other projects.
  @Suite(.serialized) struct DavTests {
    let scratch = try! Scratch()

    @Test(.needs(.nginx, .apache, .wsgidav, .rclone), arguments: DavServer.allCases)
    func serverTakesAFolder(_ kind: DavServer) async throws {
      for number in 0..<20 { try scratch.file("gallery/2026/Mäi \(number % 3)/IMG \(number).jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", 32 << 20)
      let gallery = Folder(scratch.path("gallery"))
      let received = try scratch.folder("received")
      let server = try await kind.start(into: received, in: scratch)
      let (end, push) = try await fullbore("push", gallery.path + "/", "dav+\(server.url)/backup/phone/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: Folder(received + "/backup/phone"))
      #expect(push.peakMemory <= most(40 << 20), "\(push.peakMemory >> 20) MiB")
    }

    /// nginx does not announce WebDAV, and responds with 500 to a PUT into a missing folder.
    @Test(.needs(.nginx), arguments: ["", "dav+"], ["", "new/place/"])
    func foldersAreMadeWhereNginxWantsThem(_ uploadProtocol: String, _ place: String) async throws {
      for number in 0..<20 { try scratch.file("gallery/2026/\(number % 3)/IMG \(number).jpg", 5000 + number) }
      try scratch.file("gallery/first.jpg", 1000)
      let gallery = Folder(scratch.path("gallery"))
      let received = try scratch.folder("received")
      let server = try await DavServer.nginx.start(into: received, in: scratch)
      let (end, push) = try await fullbore(
        "push", "--retries", "0", gallery.path + "/", "\(uploadProtocol)\(server.url)/\(place)", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: Folder(received + "/" + place))
    }

    /// nginx answers 500 after the whole body, and does so each time.
    @Test(.needs(.nginx), arguments: ["", "card/"])
    func aFolderThatPutMissesIsNamedSoon(_ place: String) async throws {
      for number in 0..<8 { try scratch.file("gallery/\(number).jpg", 5000) }
      let received = try scratch.folder("received")
      let server = try await DavServer.nginx.start(into: received, in: scratch)
      let began = ContinuousClock.now
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery"), "put+\(server.url)/\(place)", in: scratch)
      #expect(end == .exited(place.isEmpty ? 1 : 3), "\(push.output)\(push.errors)")
      #expect(
        push.errors.contains("\(server.url)/\(place.isEmpty ? "gallery/" : place) is not there. With dav+ instead"),
        "\(push.errors)")
      #expect(!push.errors.contains("failures in a row"), "\(push.errors)")
      #expect(began.duration(to: .now) < .seconds(20))
    }

    @Test(.needs(.nginx, .apache, .wsgidav, .rclone), arguments: DavServer.allCases)
    func namesThatAreTakenAreKept(_ kind: DavServer) async throws {
      let received = try scratch.folder("received")
      let server = try await kind.start(into: received, in: scratch)
      for size in [1000, 6 << 20] {
        let name = "\(size).jpg"
        try scratch.file("old/\(name)", size, seed: 1)
        try scratch.file("other/\(name)", size, seed: 2)
        let (old, other) = (Folder(scratch.path("old")), Folder(scratch.path("other")))
        let url = "dav+\(server.url)/"
        #expect(try await fullbore("push", "\(old.path)/\(name)", url, in: scratch).end == .exited(0))
        // Each push uses a new journal, so it finds out from the server which files exist.
        let journal = scratch.newPath("journal")
        let (same, again) = try await fullbore(
          "push", "\(old.path)/\(name)", url, "--journal", journal, in: scratch)
        #expect(same == .exited(0), "\(again.errors)")
        let (refused, push) = try await fullbore("push", "\(other.path)/\(name)", url, in: scratch)
        #expect(refused == .exited(1) && push.errors.contains("another file"), "\(push.errors)")
        #expect(old.hasSameBytes(name, as: Folder(received)))
        let (replaced, overwrite) = try await fullbore(
          "push", "--overwrite", "\(other.path)/\(name)", url, in: scratch)
        #expect(replaced == .exited(0), "\(overwrite.errors)")
        #expect(other.hasSameBytes(name, as: Folder(received)))
      }
      #expect(Folder(received).files().count == 2, "\(Folder(received).files())")
    }

    /// The slash at the end of the destination was forgotten. Some servers delete a folder that a file is moved over.
    @Test(.needs(.nginx, .apache, .wsgidav, .rclone), arguments: DavServer.allCases)
    func aFolderIsNoFileToReplace(_ kind: DavServer) async throws {
      try scratch.file("new.jpg", 1000)
      try scratch.file("received/fotos/deep/a.jpg", 2000)
      let received = scratch.path("received")
      let server = try await kind.start(into: received, in: scratch)
      for options in [[], ["--overwrite"]] {
        let push = try Command(
          Tool.fullbore, ["push"] + options + [scratch.path("new.jpg"), "dav+\(server.url)/fotos"], in: scratch)
        #expect(try await push.wait() != .exited(0), "\(push.output)")
        #expect(push.errors.contains("a folder has that name"), "\(push.errors)")
        #expect(!push.errors.contains("replaces that file"), "\(push.errors)")
      }
      #expect(Folder(received).files() == ["fotos/deep/a.jpg": 2000], "\(Folder(received).files())")
    }

    /// Some servers refuse names that others accept. Every file that arrives has its own name, and every other file is
    /// reported.
    @Test(.needs(.nginx, .apache, .wsgidav, .rclone), arguments: DavServer.allCases)
    func namesArriveAsTheyAreOrAreNamed(_ kind: DavServer) async throws {
      let names = [
        "100% a+b & c=d;e,f.jpg", "what?#.jpg", "%2e%2E%2fetc", "back\\slash.jpg", "co:lon*<>|\".jpg", "ends in a dot.",
        " spaces ", "e\u{301} and \u{E9}.jpg", "🎬.mov", "tab\there.jpg", String(repeating: "n", count: 250),
      ]
      for (number, name) in names.enumerated() { try scratch.file("gallery/\(name)", 1000 + number) }
      let (gallery, received) = (Folder(scratch.path("gallery")), try scratch.folder("received"))
      let server = try await kind.start(into: received, in: scratch)
      let (end, push) = try await fullbore(
        "push", "--retries", "1", "--json", gallery.path + "/", "dav+\(server.url)/", in: scratch)
      let there = Folder(received).files()
      for name in there.keys where gallery.files()[name] != nil {
        #expect(gallery.hasSameBytes(name, as: Folder(received)), "\(name) differs")
      }
      // wsgidav shortens names and reports success.
      #expect(kind == .wsgidav || Set(there.keys).isSubset(of: gallery.files().keys), "\(there.keys)")
      let missing = names.filter { there[$0] == nil }.count
      #expect(end == .exited(missing == 0 ? 0 : 1), "\(push.output)\(push.errors)")
      #expect(missing <= 3, "\(names.filter { there[$0] == nil }) \(push.output)\(push.errors)")
      #expect(kind != .wsgidav || push.output.contains("it has given it another name"), "\(push.output)")
      let failed = push.output.split(separator: "\n").filter { $0.contains("\"failed\"") }
      #expect(failed.count >= missing, "\(push.output)")
    }

    @Test(.needs(.apache, .wsgidav, .rclone), arguments: [DavServer.apache, .wsgidav, .rclone])
    func discoveryFindsWebDAV(_ kind: DavServer) async throws {
      let file = try scratch.file("a.jpg", 1000)
      let received = try scratch.folder("received")
      let server = try await kind.start(into: received, in: scratch)
      let (end, push) = try await fullbore("push", "-v", file, "\(server.url)/", in: scratch)
      #expect(end == .exited(0) && (push.output + push.errors).contains("speaks dav"), "\(push.output)\(push.errors)")
    }

    /// A proxy delivers the rest of a request after the client has disconnected and tried again, so two requests write
    /// at the same time.
    @Test(.needs(.wsgidav)) func lateDeliveryPublishesNoMixture() async throws {
      let received = try scratch.folder("received")
      let server = try await DavServer.wsgidav.start(into: received, in: scratch)
      let port = try #require(URLComponents(string: server.url)?.port)
      var proxies: [ChaosProxy] = []
      for number in 0..<12 {
        let size = 300_000 + number
        let file = try scratch.file("gallery/\(number).jpg", size, seed: UInt64(number))
        let first = ChaosProxy.Fault.late(
          after: 200 + number * 20_000, taking: 50_000, over: .milliseconds(400 + 100 * (number % 4)))
        let second = ChaosProxy.Fault.late(after: 400 + number * 10_000, taking: 200_000, over: .milliseconds(300))
        // The first connection is for the discovery of the protocol.
        let proxy = ChaosProxy(to: port, .init([first, second, .none]))
        let (end, push) = try await fullbore(
          "push", "--journal", scratch.newPath("journal"), "--jobs", "1", file, "dav+http://127.0.0.1:\(proxy.port)/",
          in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        proxies.append(proxy)
      }
      // Delayed bytes may arrive after the push has ended.
      try await Task.sleep(for: .seconds(1))
      withExtendedLifetime(proxies) {}
      Folder(scratch.path("gallery")).expectSame(as: Folder(received))
    }

    /// The pipe is longer than the spool's memory.
    @Test(.needs(.rclone, .wsgidav), arguments: [DavServer.wsgidav, .rclone])
    func longPipeArrivesWhole(_ kind: DavServer) async throws {
      let received = try scratch.folder("received")
      let server = try await kind.start(into: received, in: scratch)
      let file = try scratch.file("gallery/film.mov", 20 << 20)
      let push = try Command(
        "/bin/sh", ["-c", "cat '\(file)' | \"$0\" push --name film.mov - dav+\(server.url)/", Tool.fullbore],
        in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: Folder(received))
    }

    @Test(.needs(.nginx)) func aPipeThatIsThereAlreadyIsSaidToBe() async throws {
      let server = try await DavServer.nginx.start(into: try scratch.folder("received"), in: scratch)
      for words in ["1 file sent", "already there"] {
        let push = try Command(
          "/bin/sh",
          ["-c", "head -c 1M /dev/zero | \"$0\" push -v --name zeros - dav+\(server.url)/", Tool.fullbore], in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        #expect(push.output.contains(words) && !push.output.contains("resumed"), "\(push.output)")
        let (_, status) = try await fullbore("status", "--all", in: scratch)
        #expect(status.output.contains("done: 1 file, 1") && !status.output.contains("unknown"), "\(status.output)")
      }
    }

    /// The server has lost nothing, and the message tells the user what would have helped.
    @Test(.needs(.nginx)) func aPipeThatIsCutSaysWhatHelps() async throws {
      let server = try await DavServer.nginx.start(into: try scratch.folder("received"), in: scratch)
      let port = try #require(URLComponents(string: server.url)?.port)
      let proxy = ChaosProxy(to: port, .init(Array(repeating: .cutUp(after: 16 << 20), count: 4)))
      let push = try Command(
        "/bin/sh",
        [
          "-c", "head -c 20M /dev/zero | \"$0\" push --name zeros - dav+http://127.0.0.1:\(proxy.port)/", Tool.fullbore,
        ], in: scratch)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("read once") && push.errors.contains("--spool-dir"), "\(push.errors)")
      for wrong in ["server has lost", "zeros: zeros:", "is not sent again"] {
        #expect(!push.errors.contains(wrong), "\(push.errors)")
      }
    }

    /// `abort` deletes the remains of a killed push, and another push starts again.
    @Test(.needs(.nginx)) func killedPushLeavesNothingBehind() async throws {
      let file = try scratch.file("gallery/video.mov", 24 << 20)
      let received = try scratch.folder("received")
      let server = try await DavServer.nginx.start(into: received, in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "8M", file, "dav+\(server.url)/", in: scratch)
      try await until("it is under way") {
        (try? String(contentsOfFile: scratch.path("nginx/body"), encoding: .utf8)) != nil || push.end != nil
          || Folder(scratch.path("nginx")).received() > 2 << 20 ? true : nil
      }
      push.kill(SIGKILL)
      #expect(try await push.wait() == .killed(by: SIGKILL))
      #expect(Folder(received).files().keys.allSatisfy { $0.hasPrefix(".fullbore-") })
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(resume.errors)")
      Folder(scratch.path("gallery")).expectSame(as: Folder(received))
    }

    /// Fullbore's own server takes plain PUTs, and replaces a file only for a request that says so.
    @Test(arguments: [5000, 5_000_000]) func ourOwnServerReplacesFilesToo(_ size: Int) async throws {
      let server = try await ServeProcess.start(in: scratch)
      for seed in [UInt64(1), 2] {
        try scratch.file("card/film.mov", size, seed: seed)
        let (end, push) = try await fullbore(
          "push", "--overwrite", scratch.path("card/"), "dav+\(server.url)in/", in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        #expect(
          FileManager.default.contentsEqual(
            atPath: "\(server.folder.path)/in/film.mov", andPath: scratch.path("card/film.mov")))
      }
    }
  }
}
