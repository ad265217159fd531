import Foundation
import Testing

extension EndToEnd {
  /// Two processes at once: with one journal, with one server, and one that aborts what the other one sends.
  @Suite(.serialized) struct SharingTests {
    let scratch = try! Scratch()

    @Test func twoPushesOverOneJournalShareTheWork() async throws {
      for number in 0..<60 { try scratch.file("gallery/IMG_\(number).jpg", 200_000 + number) }
      try scratch.file("gallery/video.mov", 12 << 20)
      let gallery = Folder(scratch.path("gallery"))
      let server = try await ServeProcess.start(in: scratch)
      let pushes = try (0..<2).map { _ in
        try Command.fullbore("push", "--bwlimit", "16M", gallery.path + "/", server.url, in: scratch)
      }
      for push in pushes {
        // This push waits for the file that the other one sends, and says so once.
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        let lines = push.errors.split(separator: "\n")
        #expect(lines.count <= 1 && lines.allSatisfy { $0.contains("waiting until they are there") }, "\(push.errors)")
      }
      gallery.expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0)
      let (end, third) = try await fullbore("push", gallery.path + "/", server.url, in: scratch)
      #expect(end == .exited(0) && third.output.contains("61 done before"), "\(third.output)\(third.errors)")
    }

    @Test func anUploadThatAnotherProcessGivesUpIsTakenOver() async throws {
      let file = try scratch.file("gallery/video.mov", 12 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let first = try Command.fullbore("push", "--bwlimit", "4M", file, "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      let second = try Command.fullbore("push", file, "tus+" + server.url, in: scratch)
      try await until("it waits") { second.errors.contains("process \(first.pid) is sending some of") ? true : nil }
      first.kill(SIGKILL)
      try await first.wait()
      #expect(try await second.wait() == .exited(0), "\(second.output)\(second.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)

      let third = try Command.fullbore(
        "push", "--bwlimit", "4M", scratch.file("gallery/b.mov", 12 << 20), "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      let fourth = try Command.fullbore("push", scratch.path("gallery/b.mov"), "tus+" + server.url, in: scratch)
      try await until("it waits") { fourth.errors.contains("process \(third.pid) is sending some of") ? true : nil }
      fourth.kill(SIGINT)
      #expect(try await fourth.wait(.seconds(3)) == .exited(130))
    }

    /// The second push to a name waits, so that the journal knows whose bytes the name has in the end.
    @Test(arguments: ["tus+", "put+", "resumable+"])
    func theReplacedFilesOfTwoPushesAreSentAgain(_ uploadProtocol: String) async throws {
      let names = (0..<200).map { "\($0).jpg" }
      for (index, name) in names.enumerated() {
        try scratch.file("x/\(name)", 3000, seed: UInt64(index))
        try scratch.file("y/\(name)", 3001, seed: UInt64(1000 + index))
      }
      let server = try await ServeProcess.start(in: scratch)
      let pushes = try ["x/", "y/"].map {
        try Command.fullbore("push", "--overwrite", scratch.path($0), uploadProtocol + server.url, in: scratch)
      }
      for push in pushes { #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)") }
      let (end, third) = try await fullbore(
        "push", "--overwrite", scratch.path("x/"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(third.output)\(third.errors)")
      let wrong = names.filter { !Folder(scratch.path("x")).hasSameBytes($0, as: server.folder) }
      #expect(wrong.isEmpty, "\(third.output)")
    }

    @Test(arguments: ["put+", "tus+"]) func oneFileFromTwoMachinesArrivesOnce(_ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/video.mov", 12 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let pushes = try ["one", "two"].map { machine in
        try Command.fullbore(
          "push", "--bwlimit", "24M", file, uploadProtocol + server.url, in: scratch,
          environment: ["FULLBORE_JOURNAL": scratch.path("\(machine).sqlite")])
      }
      for push in pushes { #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)") }
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0)
    }

    @Test(arguments: ["put+", "tus+"]) func otherBytesFromTwoMachinesAreNeverMixed(_ uploadProtocol: String)
      async throws
    {
      let server = try await ServeProcess.start(in: scratch)
      let pushes = try (1...2).map { machine in
        try Command.fullbore(
          "push", "--bwlimit", "24M",
          scratch.file("\(machine)/video.mov", 12 << 20, seed: UInt64(machine)), uploadProtocol + server.url,
          in: scratch,
          environment: ["FULLBORE_JOURNAL": scratch.path("\(machine).sqlite")])
      }
      var winners: [Int] = []
      for (machine, push) in pushes.enumerated() {
        let end = try await push.wait()
        if end == .exited(0) { winners.append(machine + 1) } else { #expect(end == .exited(1), "\(push.errors)") }
      }
      #expect(winners.count == 1)
      Folder(scratch.path("\(winners.first ?? 0)")).expectSame(as: server.folder)
    }

    @Test func abortLeavesAFileThatIsBeingSent() async throws {
      let file = try scratch.file("gallery/video.mov", 12 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "6M", file, "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(status.output.contains("process \(push.pid) is sending it"), "\(status.output)")
      let (end, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(end == .exited(1))
      #expect(abort.errors.contains("process \(push.pid) is sending it"), "\(abort.errors)")
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test func abortGivesUpOneOrAll() async throws {
      let server = try await ServeProcess.start(in: scratch)
      for name in ["a", "b", "c"] { try await interrupt("\(name).mov", server) }
      let ids = try await unfinished().map(\.id)
      #expect(ids.count == 3)
      let (one, abort) = try await fullbore("abort", "\(ids[1])", in: scratch)
      #expect(one == .exited(0) && abort.output.contains("b.mov  given up"), "\(abort.output)\(abort.errors)")
      #expect(try await unfinished().map(\.id) == [ids[0], ids[2]])
      let (again, none) = try await fullbore("abort", "\(ids[1])", in: scratch)
      #expect(again == .exited(1) && none.errors.contains("no unfinished upload"), "\(none.errors)")
      #expect(try await fullbore("abort", "--all", in: scratch).end == .exited(0))
      #expect(try await unfinished().isEmpty)
      #expect(server.folder.unfinished() == 0)
    }

    @Test func abortGivesUpWhatHasExpired() async throws {
      let server = try await ServeProcess.start(in: scratch, "--expire", "1s")
      try await interrupt("short.mov", server)
      let expires = try #require(try await unfinished().first?.expires)
      try await until("the server's word has passed") { Int(time(nil)) >= expires ? true : nil }
      let (end, abort) = try await fullbore("abort", "--expired", in: scratch)
      #expect(end == .exited(0) && abort.output.contains("short.mov  given up"), "\(abort.output)\(abort.errors)")
      #expect(try await unfinished().isEmpty)
      let (_, nothing) = try await fullbore("abort", "--expired", in: scratch)
      #expect(nothing.output.contains("Nothing has expired"))
    }

    /// Simulates an upload that ran longer than the expiration time of its creation.
    @Test func anUploadThatTheServerKeepsLongerThanTheJournalSaysIsResumed() async throws {
      let short = try await ServeProcess.start(in: scratch, "--expire", "1s")
      try await interrupt("long.mov", short)
      short.command.kill(SIGKILL)
      try await short.command.wait()
      let server = try await short.startAgain(in: scratch)
      let expires = try #require(try await unfinished().first?.expires)
      try await until("the journal's time has passed") { Int(time(nil)) >= expires ? true : nil }
      let (end, abort) = try await fullbore("abort", "--expired", in: scratch)
      #expect(end == .exited(0) && abort.output.contains("long.mov  stays"), "\(abort.output)\(abort.errors)")
      let (_, status) = try await fullbore("status", "--check", in: scratch)
      #expect(status.output.contains("kept for") && !status.output.contains("expired"), "\(status.output)")
      #expect(server.folder.unfinished() > 0)
    }

    @Test func aServerThatIsGoneCanBeForgotten() async throws {
      let server = try await ServeProcess.start(in: scratch)
      try await interrupt("lost.mov", server)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      let (refused, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(refused == .exited(3) && abort.errors.contains("--forget"), "\(abort.errors)")
      #expect(try await unfinished().count == 1)
      #expect(try await fullbore("abort", "--all", "--forget", in: scratch).end == .exited(0))
      #expect(try await unfinished().isEmpty)
    }

    @Test func statusSaysHowFarAndChecksIt() async throws {
      let server = try await ServeProcess.start(in: scratch)
      try await interrupt("video.mov", server)
      let held = try await server.folder.settled()
      let entry = try #require(try await unfinished().first)
      #expect(entry.sent >= held && entry.sent < 12 << 20)
      let (_, plain) = try await fullbore("status", in: scratch)
      #expect(plain.output.contains("interrupted: 1 file"), "\(plain.output)")
      #expect(plain.output.contains("video.mov  up to"), "\(plain.output)")
      let (end, asked) = try await fullbore("status", "--check", "--json", in: scratch)
      #expect(end == .exited(0) && asked.output.contains(#""held":\#(held),"#), "\(held): \(asked.output)")
      server.command.kill(SIGKILL)
      try await server.command.wait()
      let (_, alone) = try await fullbore("status", "--check", in: scratch)
      #expect(alone.output.contains("not asked: "), "\(alone.output)")
    }

    /// Some servers end a request with a body when another request asks for the same upload.
    @Test func statusAsksNothingAboutWhatIsBeingSent() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--bwlimit", "8M", scratch.file("gallery/video.mov", 12 << 20), "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      let (end, status) = try await fullbore("status", "--check", in: scratch)
      #expect(end == .exited(0) && status.output.contains("is sending it"), "\(status.output)")
      #expect(!status.output.contains("the server holds"), "\(status.output)")
      push.kill(SIGINT)
      try await push.wait()
    }

    @Test func aFolderIsServedOnce() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let (end, second) = try await fullbore("serve", server.folder.path, "--listen", "127.0.0.1:0", in: scratch)
      #expect(end == .exited(1))
      #expect(second.errors.contains("already served") && second.output.isEmpty, "\(second.output)\(second.errors)")
    }

    /// Leaves an upload of 12 MiB with a part of it at the server.
    private func interrupt(_ name: String, _ server: ServeProcess) async throws {
      let before = server.folder.unfinished()
      let push = try Command.fullbore(
        "push", "--bwlimit", "8M", scratch.file("gallery/\(name)", 12 << 20), "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > before + 1 << 20 ? true : nil }
      push.kill(SIGINT)
      #expect(try await push.wait() == .exited(130))
    }

    private struct Unfinished: Decodable {
      var id: Int
      var sent: Int
      var expires: Int?
    }

    private func unfinished() async throws -> [Unfinished] {
      let status = try Command.fullbore("status", "--json", in: scratch)
      try await status.wait()
      return try decode(status.output)
    }

    private func decode(_ output: String) throws -> [Unfinished] {
      try output.split(separator: "\n").filter { $0.contains(#""event":"file""#) }
        .map { try JSONDecoder().decode(Unfinished.self, from: Data($0.utf8)) }
    }
  }
}
