import Foundation
import Testing

extension EndToEnd {
  /// Symbolic links that lead in a circle, where a file is wanted.
  @Suite(.serialized) struct LinkLoopTests {
    let scratch = try! Scratch()

    @Test(arguments: ["status", "resume", "abort", "push"])
    func aJournalThatIsALoopOfLinksIsRefused(_ command: String) async throws {
      for (link, target) in [("loop", "loop"), ("one", "two"), ("two", "one")] {
        try FileManager.default.createSymbolicLink(atPath: scratch.path(link), withDestinationPath: target)
      }
      try scratch.file("a.jpg", 1000)
      let operands = ["push": [scratch.path("a.jpg"), "http://127.0.0.1:9/"], "abort": ["1"]][command] ?? []
      for link in ["loop", "one"] {
        let run = try Command(Tool.fullbore, [command, "--journal", scratch.path(link)] + operands, in: scratch)
        #expect(try await run.wait() == .exited(1), "\(run.output)\(run.errors)")
        #expect(run.errors.contains("Too many levels of symbolic links"), "\(run.errors)")
      }
    }
  }
}
