import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// `fullbore push -`: standard input can be read only once.
  @Suite(.serialized) struct PipeTests {
    let scratch = try! Scratch()

    /// Pushes the output of a shell command; the program that writes into the pipe keeps writing.
    private func push(_ command: String, _ arguments: String...) throws -> Command {
      try Command(
        "bash", ["-c", "exec \"$0\" push \"$@\" < <(\(command))", Tool.fullbore] + arguments, in: scratch)
    }

    @Test func theErrorSaysThatStandardInputIsClosed() async throws {
      let push = try Command(
        "bash", ["-c", "exec \"$0\" push - --name film.mov http://127.0.0.1:9/ <&-", Tool.fullbore], in: scratch)
      #expect(try await push.wait() == .exited(2) && push.errors.contains("standard input is closed"), "\(push.errors)")
    }

    @Test(arguments: ["tus+", "resumable+", "put+", ""]) func aPipeArrives(_ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/film.mov", (40 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let push = try push("cat '\(file)'", "-", "--name", "film.mov", uploadProtocol + server.url)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(push.output.contains("film.mov  40"), "its length is known in the end: \(push.output)")
    }

    /// It cannot be read again: what arrived is compared by a digest that was made on the way.
    @Test(arguments: ["tus+", "resumable+", "put+", ""]) func aPipeIsVerified(_ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/film.mov", (40 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch)
      let push = try push("cat '\(file)'", "--verify", "-", "--name", "film.mov", uploadProtocol + server.url)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// Two cuts and a kill of the server: the pipe is read once, and what was not acknowledged comes from the spool.
    @Test(arguments: ["tus+", "resumable+"]) func cutsAndAKillOfTheServerLoseNothing(_ uploadProtocol: String)
      async throws
    {
      let file = try scratch.file("gallery/film.mov", 48 << 20)
      var server = try await ServeProcess.start(in: scratch)
      let proxy = ChaosProxy(to: server.port)
      let push = try push(
        "cat '\(file)'", "--bwlimit", "24M", "--header", "Host: 127.0.0.1:\(server.port)", "-",
        "\(uploadProtocol)http://127.0.0.1:\(proxy.port)/film.mov")
      for (number, wanted) in [8, 20, 32].enumerated() {
        try await until("\(wanted) MiB have arrived: \(push.errors)") { [server] in
          if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
          return server.folder.unfinished() >= wanted << 20 ? true : nil
        }
        if number == 1 {
          server.command.kill(SIGKILL)
          try await server.command.wait()
          server = try await server.startAgain(in: scratch)
        } else {
          proxy.cutAll()
        }
      }
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(proxy.counters.bytesUp < 48 << 20 + 3 * 10 << 20, "at most a part is sent again for each break")
    }

    /// No byte is written to disk either: the kernel kills a process that writes more than 1 MiB to a file.
    @Test(arguments: ["tus+", "put+"]) func memoryStaysFlat(_ uploadProtocol: String) async throws {
      let size = 512 << 20
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        "bash",
        [
          "-c", "ulimit -f 1024; exec \"$0\" push - --name zeros \"$1\" < <(head -c \(size) /dev/zero)",
          Tool.fullbore, uploadProtocol + server.url,
        ], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files() == ["zeros": size])
      #expect(push.peakMemory > 1 << 20)
      #expect(push.peakMemory <= most(40 << 20), "\(push.peakMemory >> 20) MiB")
    }

    /// The interrupted bytes cannot be read again, and the message says what would have helped.
    @Test func aPutThatIsNotHeldIsGivenUp() async throws {
      let server = try await ServeProcess.start(in: scratch)
      // The request that checks the server's handling of names may have a connection of its own.
      let cuts = ChaosProxy.Schedule(Array(repeating: .cutUp(after: 24 << 20), count: 2))
      let proxy = ChaosProxy(to: server.port, cuts)
      let place = "put+http://127.0.0.1:\(proxy.port)/zeros"
      let host = "Host: 127.0.0.1:\(server.port)"
      let failing = try push("head -c 32M /dev/zero", "--header", host, "-", place)
      #expect(try await failing.wait() == .exited(1))
      #expect(failing.errors.contains("read once") && failing.errors.contains("--spool-dir"), "\(failing.errors)")
      #expect(
        failing.errors.contains("tus+, resumable+") && !failing.errors.contains("is not sent again"),
        "\(failing.errors)")
      #expect(server.folder.files().isEmpty)

      let again = ChaosProxy(to: server.port, cuts)
      let whole = try push(
        "head -c 32M /dev/zero", "--header", host, "--spool-dir", scratch.path, "-",
        "put+http://127.0.0.1:\(again.port)/zeros")
      #expect(try await whole.wait() == .exited(0), "\(whole.errors)")
      #expect(server.folder.files() == ["zeros": 32 << 20])
    }

    /// The length is known once the pipe has ended, and `status` shows it from then on.
    @Test(arguments: ["tus+", "resumable+", "put+"])
    func aPipeThatArrivedIsKnownByItsLength(_ uploadProtocol: String) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try push("head -c 3000 /dev/zero", "-", "--name", "zeros", uploadProtocol + server.url)
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      let (_, status) = try await fullbore("status", "--all", in: scratch)
      #expect(status.output.contains("done: 1 file, 2.93 KiB"), "\(status.output)")
      #expect(status.output.contains("zeros  2.93 KiB"), "\(status.output)")
    }

    /// No other run can resume it.
    @Test(arguments: ["tus+", "resumable+"])
    func aPipeThatFailsForGoodLeavesNothingAtTheServer(_ uploadProtocol: String) async throws {
      let server = try await ServeProcess.start(in: scratch, "--max-total", "4M")
      let push = try push("head -c 24M /dev/zero", "-", "--name", "zeros", uploadProtocol + server.url)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(server.folder.received() == 0, "\(server.folder.unfinished())")
      let (_, status) = try await fullbore("status", "--json", in: scratch)
      #expect(status.output.contains(#""state":"failed""#), "\(status.output)")
    }

    @Test func aPipeThatWasInterruptedIsNotResumed() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try push("cat /dev/zero", "--bwlimit", "8M", "-", "tus+\(server.url)zeros")
      try await until("some of it has arrived") {
        if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
        return server.folder.unfinished() > 1 << 20 ? true : nil
      }
      push.kill(SIGINT)
      #expect(try await push.wait() == .exited(130), "\(push.errors)")
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1))
      #expect(resume.errors.contains("standard input, which cannot be read again"), "\(resume.errors)")
      let (ended, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(ended == .exited(0), "\(abort.errors)")
      #expect(server.folder.unfinished() == 0)
    }

    @Test(
      arguments: [
        (["-", "http://h/"], "needs a name"), (["-", "x.jpg", "http://h/"], "stands alone"),
        (["--spool-memory", "1", "-", "http://h/x"], "--spool-memory"),
      ]) func contradictoryArgumentsAreRefused(_ arguments: [String], _ reason: String) async throws
    {
      let push = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
      #expect(try await push.wait() == .exited(2))
      #expect(push.errors.contains(reason), "\(push.errors)")
    }
  }
}
