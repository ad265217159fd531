import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// `fullbore resume`: which servers get credentials, and what it does not report as finished.
  @Suite(.serialized) struct ResumeTests {
    let scratch = try! Scratch()
    /// The response of a server that has stored a file with its modification time, so the client does not check the
    /// file.
    static let made = "HTTP/1.1 201 Made\r\nX-OC-MTime: accepted\r\nContent-Length: 0\r\n\r\n"

    /// Answers the HEAD by which a push asks whether there is a file to overwrite.
    static let nothingThere: [ScriptedPeer.Step] = [
      .readRequest, .send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    ]
    static let interrupted = nothingThere + [.readHead, .read(100_000), .hold]

    /// Leaves an unfinished upload to `peer`, which runs `interrupted` first.
    func interrupt(_ peer: ScriptedPeer, _ name: String, _ options: String...) async throws {
      let push = try Command(
        Tool.fullbore,
        ["push", "--overwrite"] + options + [scratch.file(name, 8 << 20), "put+http://127.0.0.1:\(peer.port)/in/"],
        in: scratch)
      await peer.wait { $0.steps.last == 4 }
      try await untilEveryFileIsKnown(in: scratch)
      push.kill(SIGKILL)
      try await push.wait()
    }

    @Test func aTokenGoesToTheServerThatItIsForAndNoOther() async throws {
      let answer = Self.nothingThere + [.readRequest, .send(Self.made)]
      let (mine, other) = (ScriptedPeer(Self.interrupted, answer), ScriptedPeer(Self.interrupted, answer))
      try await interrupt(mine, "a.mov")
      try await interrupt(other, "b.mov")
      let token = scratch.path("token")
      try "planted-token".write(toFile: token, atomically: true, encoding: .utf8)

      let (end, both) = try await fullbore("resume", "--token-file", token, in: scratch)
      #expect(end == .exited(2), "\(both.output)\(both.errors)")
      for peer in [mine, other] {
        #expect(both.errors.contains("http://127.0.0.1:\(peer.port)"), "\(both.errors)")
        #expect(!peer.seen.heads.joined().contains("planted-token"))
      }
      let (one, resume) = try await fullbore(
        "resume", "http://127.0.0.1:\(mine.port)/", "--token-file", token, in: scratch)
      #expect(one == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(mine.seen.heads.last?.contains("Bearer planted-token") == true)
      #expect(!other.seen.heads.joined().contains("planted-token"))
      // Only one server is left, so the credential is for that one.
      let (rest, last) = try await fullbore("resume", "--token-file", token, in: scratch)
      #expect(rest == .exited(0), "\(last.output)\(last.errors)")
      #expect(other.seen.heads.last?.contains("Bearer planted-token") == true)
    }

    @Test func resumeVerifiesAPushThatBeganWithVerify() async throws {
      let peer = ScriptedPeer(
        Self.interrupted,
        Self.nothingThere + [
          .readRequest, .send(Self.made),
          // It is asked for a digest first, which it does not know.
          .readRequest, .send("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n"), .readRequest,
          .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"),
        ])
      try await interrupt(peer, "a.mov", "--verify")
      let (end, resume) = try await fullbore("resume", "--retries", "0", in: scratch)
      #expect(end == .exited(1), "\(resume.output)\(resume.errors)")
      #expect(resume.errors.contains("what the server has differs"), "\(resume.errors)")
      #expect(peer.seen.heads.last?.hasPrefix("GET /in/a.mov ") == true)
    }

    /// A file that no longer exists cannot be finished. The message says so, and how to remove the entry.
    @Test func anUploadWhoseSourceIsGoneIsNamedAndCanBeGivenUp() async throws {
      let peer = ScriptedPeer(Self.interrupted)
      try await interrupt(peer, "card/a.mov")
      let file = scratch.path("card/a.mov")
      #expect(!(try await fullbore("status", in: scratch).command.output.contains("gone")))
      try FileManager.default.removeItem(atPath: file)
      let status = try await fullbore("status", in: scratch).command
      let words = "the source is gone, \(file): put it back, or 'fullbore abort 1' gives it up"
      #expect(status.output.contains(words) && !status.output.contains("'fullbore resume'"), "\(status.output)")
      let json = try await fullbore("status", "--json", in: scratch).command
      #expect(json.output.contains(#""source_lost":"the source is gone"#), "\(json.output)")
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1) && resume.errors.contains(words), "\(resume.errors)")
      #expect(try await fullbore("abort", "1", in: scratch).end == .exited(0))
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
    }

    /// A pipe would block, and a device would be read, without end.
    @Test(arguments: ["a pipe", "a device", "a folder"])
    func aPipeOrDeviceInThePlaceOfAFileIsNotSent(_ kind: String) async throws {
      let peer = ScriptedPeer(Self.interrupted)
      try await interrupt(peer, "card/a.mov")
      let file = scratch.path("card/a.mov")
      try FileManager.default.removeItem(atPath: file)
      switch kind {
      case "a pipe": #expect(mkfifo(file, 0o600) == 0)
      case "a device": try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "/dev/zero")
      default: try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
      }
      let resume = try Command(Tool.fullbore, ["resume"], in: scratch)
      #expect(try await resume.wait(.seconds(10)) == .exited(1), "\(resume.output)\(resume.errors)")
      let words =
        "the source is gone, \(file): it is \(kind) now, and no file: put it back, or 'fullbore abort 1' gives it up"
      #expect(resume.errors.contains(words), "\(resume.errors)")
      let status = try await fullbore("status", in: scratch).command
      #expect(status.output.contains(words), "\(status.output)")
    }

    @Test func abortAndStatusSendCredentialsToOneServerOnly() async throws {
      let one = try await ServeProcess.start(in: scratch)
      let apart = try Scratch()
      let two = try await ServeProcess.start(in: apart)
      for (number, server) in [one, two].enumerated() {
        let push = try Command.fullbore(
          "push", "--bwlimit", "8M", scratch.file("\(number).mov", 12 << 20), "tus+" + server.url, in: scratch)
        try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
        push.kill(SIGKILL)
        try await push.wait()
      }
      let token = scratch.path("token")
      try "planted-token".write(toFile: token, atomically: true, encoding: .utf8)
      for words in [["abort", "--all"], ["status", "--check"]] {
        let command = try Command(Tool.fullbore, words + ["--token-file", token], in: scratch)
        #expect(try await command.wait() == .exited(2), "\(command.output)\(command.errors)")
        #expect(command.errors.contains("127.0.0.1:\(one.port)"), "\(command.errors)")
        #expect(command.errors.contains("127.0.0.1:\(two.port)"), "\(command.errors)")
      }
      #expect(one.folder.unfinished() > 0 && two.folder.unfinished() > 0)
    }

    /// A push that was killed while it read the folder knows only some of the files.
    @Test func aPushThatHadNotReadItsSourcesIsNotFinishedByResume() async throws {
      try scratch.folder("gallery")
      for number in 0..<3000 {
        try Data("small file \(number)".utf8).write(to: URL(fileURLWithPath: scratch.path("gallery/\(number).jpg")))
      }
      let gallery = Folder(scratch.path("gallery"))
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "3K", gallery.path + "/", server.url, in: scratch)
      try await until("some have arrived") { server.folder.files().count > 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()

      let words = "\(gallery.path)/ to \(server.url) ended before all its files were known here"
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(status.output.contains(words), "\(status.output)")
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1), "\(resume.output)\(resume.errors)")
      #expect(resume.errors.contains(words) && resume.errors.contains("run that push again"), "\(resume.errors)")
      #expect(server.folder.files().count < 3000)
      let (again, whole) = try await fullbore("push", gallery.path + "/", server.url, in: scratch)
      #expect(again == .exited(0), "\(whole.errors)")
      gallery.expectSame(as: server.folder)
      let (last, nothing) = try await fullbore("resume", in: scratch)
      #expect(last == .exited(0) && nothing.errors.isEmpty, "\(nothing.errors)")
    }

    /// A watch that ends before it has come to all the files is known, and one that has is not.
    /// A query that the files in a folder cannot carry. Without a name before the URL, only the server's answer tells.
    @Test(arguments: ["put+", "resumable+", "dav+", ""])
    func aPushThatCanNeverSucceedIsNotToBeRunAgain(_ named: String) async throws {
      try scratch.file("gallery/a.jpg", 1000)
      let peer = HTTPPeer { _ in .init(200, ["Allow": "OPTIONS, PUT"]) }
      defer { peer.stop() }
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery"), "\(named)\(peer.url.text)p/?a=planted", in: scratch)
      #expect(end == .exited(2), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("not carry") && !push.errors.contains("planted"), "\(push.errors)")
      let (rest, resume) = try await fullbore("resume", in: scratch)
      #expect(rest == .exited(0), "\(resume.output)\(resume.errors)")
    }

    @Test func aWatchThatHadNotLookedAtEverythingIsKnown() async throws {
      try scratch.file("gallery/a.jpg", 1000)
      let words = "\(scratch.path("gallery/")) to"
      let silent = ScriptedPeer([.readHead, .hold])
      let early = try WatchProcess.startBlind(to: "http://127.0.0.1:\(silent.port)/", in: scratch, [])
      await silent.wait { !$0.heads.isEmpty }
      early.command.kill(SIGKILL)
      try await early.command.wait()
      let status = try await fullbore("status", in: scratch).command
      #expect(status.output.contains(words) && status.output.contains("before all its files"), "\(status.output)")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.until("nothing is left to be looked at") {
        watch.command.output.contains("a.jpg") ? true : nil
      }
      while try await fullbore("status", "--json", server.url, in: scratch).1.output.contains("\"reading\"") {}
      watch.command.kill(SIGKILL)
      try await watch.command.wait()
      let later = try await fullbore("status", server.url, in: scratch).command
      #expect(!later.output.contains(words), "\(later.output)")
    }

    /// The server is silent, or nothing listens there: the journal knows the push before the first response.
    @Test(arguments: [true, false], ["", "put+"])
    func aPushThatEndedBeforeTheFirstAnswerIsKnown(_ isKilled: Bool, _ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/a.jpg", 100_000)
      let nobody = Loopback.listen()
      let peer = ScriptedPeer([.readHead, .hold])
      Loopback.close(nobody.descriptor)
      let place = "http://127.0.0.1:\(isKilled ? peer.port : nobody.port)/in/"
      let push = try Command.fullbore("push", "--retries", "0", file, uploadProtocol + place, in: scratch)
      if isKilled {
        await peer.wait { !$0.heads.isEmpty }
        push.kill(SIGKILL)
      }
      #expect(try await push.wait() == (isKilled ? .killed(by: SIGKILL) : .exited(3)), "\(push.errors)")

      let status = try await fullbore("status", in: scratch).command
      #expect(status.output.contains("\(file) to \(place)") || status.output.contains("a.jpg"), "\(status.output)")
      let lines = try await fullbore("status", "--json", place, in: scratch).command
      #expect(!lines.output.contains("under way"), "\(lines.output)")
      let (end, resume) = try await fullbore("resume", "--retries", "0", "--timeout", "1s", in: scratch)
      #expect(end == .exited(1) || end == .exited(3), "\(resume.output)\(resume.errors)")
      if uploadProtocol.isEmpty {
        #expect(end == .exited(1) && resume.errors.contains("run that push again"), "\(resume.errors)")
      }
    }

    @Test(arguments: ["resume", "status"]) func aDestinationThatTheJournalDoesNotKnowIsRefused(_ word: String)
      async throws
    {
      let file = try scratch.file("gallery/a.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (none, early) = try await fullbore(word, "http://elsewhere.example/", in: scratch)
      #expect(none == .exited(2), "\(early.output)\(early.errors)")
      #expect(try await fullbore("push", file, server.url, in: scratch).end == .exited(0))
      for place in ["http://elsewhere.example/?sig=planted", "s3://media/in"] {
        let (end, command) = try await fullbore(word, place, in: scratch)
        #expect(end == .exited(2), "\(command.output)\(command.errors)")
        #expect(command.errors.contains("knows of no push to") && command.errors.contains(server.url))
        #expect(!command.errors.contains("planted"), "\(command.errors)")
      }
      #expect(try await fullbore(word, server.url, in: scratch).end == .exited(0))
    }

    /// A push that has read all its sources but could not send some of them can be ended by another push, or by the
    /// user.
    @Test func theRestOfAnIncompletePushCanBeFinishedOrAborted() async throws {
      try scratch.file("one/a.jpg", 1000, seed: 1)
      try scratch.file("two/a.jpg", 1000, seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let cards = [scratch.path("one/"), scratch.path("two/")]
      let (clash, refused) = try await fullbore("push", cards[0], cards[1], server.url, in: scratch)
      #expect(clash == .exited(1) && refused.errors.contains("without a slash"), "\(refused.errors)")
      let missing = scratch.path("three/b.jpg")
      #expect(try await fullbore("push", "--overwrite", missing, server.url, in: scratch).end == .exited(1))
      #expect(try await fullbore("resume", in: scratch).end == .exited(1))
      try scratch.file("three/b.jpg", 1000)
      #expect(try await fullbore("push", missing, server.url, in: scratch).end == .exited(0))
      let status = try await fullbore("status", in: scratch).command
      #expect(!status.output.contains("b.jpg") && status.output.contains(cards[0]), "\(status.output)")
      #expect(status.output.contains("'fullbore abort 2' forgets it"), "\(status.output)")
      #expect(status.output.components(separatedBy: "\(server.url) (").count == 2, "one heading for one place")

      // Follows the advice of the message.
      let (end, apart) = try await fullbore(
        "push", String(cards[0].dropLast()), String(cards[1].dropLast()), server.url, in: scratch)
      #expect(end == .exited(0), "\(apart.errors)")
      for card in ["one", "two"] {
        Folder(scratch.path(card)).expectSame(as: Folder(server.folder.path + "/" + card))
      }
      // A file that was never read has no number.
      let gone = scratch.path("four/c.jpg")
      #expect(try await fullbore("push", "--overwrite", gone, server.url, in: scratch).end == .exited(1))
      let unread = try await fullbore("abort", "--unread", in: scratch).command
      #expect(unread.output.contains("four/c.jpg") && unread.output.contains("given up"), "\(unread.output)")
      let (given, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(given == .exited(0) && abort.output.contains("given up"), "\(abort.output)\(abort.errors)")
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
    }
  }
}
