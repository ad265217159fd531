import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// A success is in doubt if its connection is lost at the next request, and the server is asked. The key of a sealed file is
  /// forgotten by then, and sealed anew, it would be another file.
  @Suite(.serialized, .enabled(if: Peer.age.isThereOrWanted)) struct SealDoubtTests {
    let tests = SealTests()

    private struct Seen {
      var sent = 0
      var isAsked = false
    }

    @Test(arguments: ["tus+", "put+"], [(SIGKILL, "push"), (SIGKILL, "resume"), (SIGINT, "push"), (SIGINT, "resume")])
    func aStoppedPushSendsNoSealedFileUnderAnotherKey(_ dialect: String, _ end: (Int32, String)) async throws {
      let scratch = tests.scratch
      let key = try await tests.makeKey()
      for name in ["a.jpg", "b.jpg"] { try scratch.photo("card/\(name)", seed: 1) }
      let server = try await ServeProcess.start(in: scratch)
      let seen = Monitor(Seen())
      let relay = JudgingRelay(to: server.port) { method in
        seen.update { seen in
          if ["POST", "PUT"].contains(method) {
            seen.sent += 1
            return seen.sent == 2 ? .cut : .pass
          }
          guard method == "HEAD", seen.sent > 2 else { return .pass }
          seen.isAsked = true
          return .hold
        }
      }
      let rest = ["--header", "Host: 127.0.0.1:\(server.port)"]
      let push =
        [
          "push", "--jobs", "1", "--seal", key.recipient, scratch.path("card/"),
          "\(dialect)http://127.0.0.1:\(relay.port)/",
        ]
        + rest
      let stopped = try Command(Tool.fullbore, push, in: scratch)
      try await until("the server is asked for the first file") { seen.update { $0.isAsked } ? true : nil }
      stopped.kill(end.0)
      try await stopped.wait()
      relay.passAll()
      let again = try Command(Tool.fullbore, end.1 == "push" ? push : ["resume"] + rest, in: scratch)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      for name in ["a.jpg", "b.jpg"] {
        try await tests.expectOpens(
          "\(server.folder.path)/\(name).age", to: scratch.path("card/\(name)"), with: key.file)
      }
      let last = try Command(Tool.fullbore, push, in: scratch)
      #expect(try await last.wait() == .exited(0), "\(last.output)\(last.errors)")
      #expect(last.output.contains("2 done before, not asked"), "\(last.output)")
    }
  }
}
