import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// Processes that share a queue in PostgreSQL.
  @Suite(.serialized, .enabled(if: TestDatabase.isThereOrWanted, TestDatabase.reason)) struct SharedQueueTests {
    private let scratch: Scratch
    private let database: TestDatabase

    init() throws {
      scratch = try Scratch()
      database = try #require(TestDatabase.shared, TestDatabase.reason)
    }

    private func gallery() throws -> Folder {
      for number in 0..<4 { try scratch.file("gallery/film-\(number).mov", 6 << 20, seed: UInt64(number)) }
      for number in 0..<100 { try scratch.file("gallery/\(number % 7)/IMG_\(number).jpg", 20_000 + number) }
      return Folder(scratch.path("gallery"))
    }

    private func start(_ arguments: String...) throws -> Command {
      try Command(Tool.fullbore, arguments + ["--journal", database.url], in: scratch)
    }

    private func run(_ arguments: String...) async throws -> (end: Command.End, text: String) {
      let command = try Command(Tool.fullbore, arguments + ["--journal", database.url], in: scratch)
      let end = try await command.wait()
      return (end, command.output + command.errors)
    }

    @Test func anotherProcessGoesOnWithTheFilesOfOneThatWasKilled() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let sent = try gallery()
      let push = try start("push", sent.path + "/", server.url + "a/", "--bwlimit", "3M")
      try await until("the films are under way") { server.folder.unfinished() > 4 << 20 ? true : nil }
      let resume = try start("resume", server.url + "a/")
      push.kill(SIGKILL)
      try await push.wait()
      let killed = ContinuousClock.now
      let atKill = server.folder.unfinished()
      try await until("its films go on") { server.folder.unfinished() > atKill || resume.end != nil ? true : nil }
      // Three seconds of the lease, and five.
      #expect(killed.duration(to: .now) < .seconds(8))
      #expect(try await resume.wait() == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(resume.output.contains("resumed at byte"))
      sent.expectSame(as: Folder(server.folder.path + "/a"))
      let again = try await run("push", sent.path + "/", server.url + "a/")
      #expect(again.end == .exited(0))
      #expect(again.text.contains("0 files sent"))
      #expect(!again.text.contains("secret"))
    }

    @Test func aProcessThatWasStoppedPastItsLeaseDoesNoHarm() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let sent = try gallery()
      let push = try start("push", sent.path + "/", server.url + "b/", "--bwlimit", "3M")
      try await until("the films are under way") { server.folder.unfinished() > 4 << 20 ? true : nil }
      push.kill(SIGSTOP)
      let resume = try await run("resume", server.url + "b/")
      #expect(resume.end == .exited(0), "\(resume.text)")
      sent.expectSame(as: Folder(server.folder.path + "/b"))
      push.kill(SIGCONT)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      sent.expectSame(as: Folder(server.folder.path + "/b"))
      let status = try await run("status", server.url + "b/")
      #expect(status.text.contains("done: 104 files"))
      #expect(!status.text.contains("waiting"))
    }

    @Test func aPushReportsWhatAnotherProcessCouldNotSend() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let sent = try gallery()
      try scratch.file("received/c/film-0.mov", 5)
      let push = try await run("push", sent.path + "/", server.url + "c/")
      #expect(push.end == .exited(1))
      let status = try await run("status", server.url + "c/")
      #expect(status.text.contains("failed: 1 file"))
      #expect(status.text.contains("film-0.mov"))
      let resume = try await run("resume", server.url + "c/")
      #expect(resume.end == .exited(1))
    }

    @Test func whatAQueueCannotDoIsRefusedByName() async throws {
      let refused = [
        ["--check"], ["--layout", "{name}"], ["--on-conflict", "rename"], ["--delete-after-verify"], ["--mhl"],
      ]
      for option in refused {
        let command = try Command(
          Tool.fullbore, ["push", scratch.path, "http://127.0.0.1:1/", "--journal", database.url] + option, in: scratch)
        #expect(try await command.wait() == .exited(2))
        #expect(command.errors.contains(option[0]))
        #expect(!command.errors.contains("secret"))
      }
      let watch = try await run("watch", scratch.path, "http://127.0.0.1:1/")
      #expect(watch.end == .exited(2))
      #expect(watch.text.contains("--journal FILE"))
    }
  }
}
