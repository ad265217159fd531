import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// `fullbore resume`: whom it gives credentials, and what it does not call finished.
  @Suite(.serialized) struct ResumeTests {
    let scratch = try! Scratch()
    private static let made = "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n"

    /// Leaves a file for `peer` unfinished.
    private func interrupt(_ peer: ScriptedPeer, _ name: String) async throws {
      let push = try Command.fullbore(
        "push", "--overwrite", scratch.file(name, 8 << 20), "put+http://127.0.0.1:\(peer.port)/in/", in: scratch)
      await peer.wait { $0.steps.last == 2 }
      push.kill(SIGKILL)
      try await push.wait()
    }

    @Test func aTokenGoesToTheServerThatItIsForAndNoOther() async throws {
      let script: [ScriptedPeer.Step] = [.readHead, .read(100_000), .hold]
      let answer: [ScriptedPeer.Step] = [.readRequest, .send(Self.made)]
      let (mine, other) = (ScriptedPeer(script, answer), ScriptedPeer(script, answer))
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
      // One server is left, so it is plain whom a credential is for.
      let (rest, last) = try await fullbore("resume", "--token-file", token, in: scratch)
      #expect(rest == .exited(0), "\(last.output)\(last.errors)")
      #expect(other.seen.heads.last?.contains("Bearer planted-token") == true)
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

    @Test func theQueryOfADestinationIsKeptNowhere() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("gallery/a.mov", 12 << 20)
      let place = "tus+\(server.url)?sig=planted-signature"
      let push = try Command.fullbore("push", "--json", "--bwlimit", "8M", file, place, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1), "\(resume.output)\(resume.errors)")
      #expect(resume.errors.contains("give the URL again"), "\(resume.errors)")
      let status = try await fullbore("status", "--json", in: scratch).command
      for text in [push.output, push.errors, resume.errors, status.output] {
        #expect(!text.contains("planted-signature"), "\(text)")
      }
      for suffix in ["", "-wal"] {
        let bytes = FileManager.default.contents(atPath: scratch.path("journal.sqlite\(suffix)")) ?? Data()
        #expect(bytes.range(of: Data("planted-signature".utf8)) == nil)
      }
      let (done, whole) = try await fullbore("resume", place, in: scratch)
      #expect(done == .exited(0), "\(whole.output)\(whole.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }
  }
}
