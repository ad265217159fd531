import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// A push that makes no progress briefly says why, and ends within the announced time.
  @Suite(.serialized) struct OutageTests {
    let scratch = try! Scratch()

    @Test(arguments: [false, true]) func anOutageAndItsEndAreReportedOnce(_ isJSON: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch)
      for number in 0..<20 { try scratch.file("gallery/\(number).mov", 2 << 20) }
      let push = try Command(
        Tool.fullbore,
        ["push", "--bwlimit", "8M"] + (isJSON ? ["--json"] : []) + [scratch.path("gallery/"), "tus+" + server.url],
        in: scratch)
      try await until("some has arrived") { server.folder.received() > 4 << 20 ? true : nil }
      server.command.kill(SIGKILL)
      try await server.command.wait()
      func said() -> String { isJSON ? push.output : push.errors }
      let words = "127.0.0.1:\(server.port) does not answer since"
      try await until("it says so") { said().contains(words) ? true : nil }
      #expect(said().contains("(connection refused), trying again"), "\(said())")
      let again = try await server.startAgain(in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(said().components(separatedBy: words).count == 2, "\(said())")
      #expect(said().contains("127.0.0.1:\(server.port) answers again, after"), "\(said())")
      if isJSON { #expect(said().contains(#""event":"outage","#) && said().contains(#""event":"outage_over","#)) }
      Folder(scratch.path("gallery")).expectSame(as: again.folder)
    }

    @Test func aSilentServerIsNamed() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--bwlimit", "4M", scratch.file("gallery/a.mov", 40 << 20), "tus+" + server.url, in: scratch)
      try await until("some has arrived") { server.folder.received() > 4 << 20 ? true : nil }
      server.command.kill(SIGSTOP)
      try await until("it says so") { push.errors.contains("nothing has moved since") ? true : nil }
      server.command.kill(SIGCONT)
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      #expect(push.errors.contains("127.0.0.1:\(server.port) answers again"), "\(push.errors)")
    }

    /// What comes from a pipe waits as a file does, whether the server is silent or gone.
    @Test(arguments: ["nothing has moved since", "does not answer since"])
    func aStalledPipeIsReportedToo(_ words: String) async throws {
      let file = try scratch.file("gallery/dump.sql", 40 << 20)
      var server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        "/bin/sh",
        ["-c", "cat \"$1\" | \"$0\" push --bwlimit 4M - \"$2dump.sql\"", Tool.fullbore, file, server.url], in: scratch)
      try await until("some has arrived") { [server] in server.folder.unfinished() > 4 << 20 ? true : nil }
      let isSilent = words.hasPrefix("nothing")
      server.command.kill(isSilent ? SIGSTOP : SIGKILL)
      try await until("it says so: \(push.errors)") { push.errors.contains(words) ? true : nil }
      if isSilent {
        server.command.kill(SIGCONT)
      } else {
        try await server.command.wait()
        server = try await server.startAgain(in: scratch)
      }
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      #expect(push.errors.contains("127.0.0.1:\(server.port) answers again"), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// The program that writes into the pipe may need any time, and the server waits for it.
    @Test func aPipeThatIsIdleIsNoOutage() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        "/bin/sh",
        ["-c", "(echo first; sleep 8; echo last) | \"$0\" push - \"$1dump.sql\"", Tool.fullbore, server.url],
        in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      #expect(push.errors == "", "\(push.errors)")
    }

    /// The server is silent before it has announced its protocols.
    @Test func aServerThatIsSilentFromTheBeginningIsNamed() async throws {
      let peer = ScriptedPeer([.readRequest, .hold])
      let url = "http://127.0.0.1:\(peer.port)/"
      let push = try Command.fullbore("push", scratch.file("a.jpg", 10), url, in: scratch)
      try await until("it says so") {
        push.errors.contains("127.0.0.1:\(peer.port) has not answered yet: waiting since") ? true : nil
      }
      peer.release()
      #expect(try await push.wait() == .exited(3), "\(push.errors)")
    }

    @Test func aRefusedConnectionIsInTheSummary() async throws {
      let closed = Loopback.listen()
      Loopback.close(closed.descriptor)
      let (end, push) = try await fullbore(
        "push", "--json", scratch.file("a.jpg", 10), "http://127.0.0.1:\(closed.port)/", in: scratch)
      #expect(end == .exited(3))
      let summary = try #require(push.output.split(separator: "\n").last)
      #expect(summary.contains(#""exit_status":3,"error":"#) && summary.contains("refused"), "\(summary)")
    }

    @Test func aStatusThatCouldNotAskIsNoSuccess() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("film.mov", 8 << 20)
      let push = try Command.fullbore("push", "--bwlimit", "2M", file, "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      kill(push.pid, SIGKILL)
      _ = try await push.wait()
      #expect(try await fullbore("status", "--check", in: scratch).end == .exited(0))
      kill(server.command.pid, SIGKILL)
      _ = try await server.command.wait()
      let (end, status) = try await fullbore("status", "--check", "--retries", "0", in: scratch)
      #expect(end == .exited(3) && status.output.contains("not asked: "), "\(status.output)\(status.errors)")
      #expect(try await fullbore("status", in: scratch).end == .exited(0))
    }

    @Test func aFilterThatLeavesNothingIsNoSuccess() async throws {
      for name in ["a.JPG", "b.JPG", "c.txt"] { try scratch.file("gallery/\(name)", 10) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--include", "*.jpg", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("nothing is sent: 3 files, none of which matches --include '*.jpg'"))
      #expect(push.errors.contains("2 would match if case did not count"), "\(push.errors)")
      let (none, excluded) = try await fullbore(
        "push", "--exclude", "*", scratch.path("gallery/"), server.url, in: scratch)
      #expect(none == .exited(1) && excluded.errors.contains("--exclude leaves out all"), "\(excluded.errors)")
    }

    @Test(.needs(.openssl)) func theWrongSchemeIsNamed() async throws {
      let certificate = try await TestCertificate.selfSigned(for: "IP:127.0.0.1", in: scratch)
      let file = try scratch.file("a.jpg", 10)
      let plain = try await ServeProcess.start(in: scratch)
      let apart = try Scratch()
      let secure = try await ServeProcess.start(
        in: apart, "--tls-cert", certificate.path, "--tls-key", certificate.key)
      for (server, spoken, tried) in [(plain, "http", "https"), (secure, "https", "http")] {
        let (end, push) = try await fullbore("push", file, "\(tried)://127.0.0.1:\(server.port)/", in: scratch)
        #expect(end == .exited(3), "\(push.errors)")
        #expect(push.errors.contains("speaks \(spoken), not \(tried)"), "\(push.errors)")
        #expect(!push.errors.contains("Run the same command again"), "\(push.errors)")
      }
    }
  }
}
