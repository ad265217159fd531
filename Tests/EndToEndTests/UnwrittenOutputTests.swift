import Foundation
import Testing

extension EndToEnd {
  /// If the output is the result of a command, the command fails when it cannot write it.
  @Suite(.serialized) struct UnwrittenOutputTests {
    let scratch = try! Scratch()

    private func end(_ redirection: String, _ words: [String]) async throws -> (end: Command.End, command: Command) {
      let script = #"p=$0; "$p" "$@" "# + redirection
      let command = try Command("bash", ["-c", script, Tool.fullbore] + words, in: scratch)
      return (try await command.wait(), command)
    }

    @Test func aResultThatCannotBeWrittenIsAFailure() async throws {
      let file = try scratch.file("a.jpg", 10)
      let server = try await ServeProcess.start(in: scratch)
      let commands = [
        ["--help"], ["--version"], ["push", "--help"], ["checksum", file], ["status"],
        ["push", "--dry-run", file, server.url], ["push", "--json", file, server.url],
      ]
      for words in commands {
        let (full, command) = try await end("> /dev/full", words)
        #expect(full == .exited(1), "\(words)")
        #expect(command.errors == "fullbore: standard output: No space left on device\n", "\(words): \(command.errors)")
        let (gone, quiet) = try await end("| :; exit ${PIPESTATUS[0]}", words)
        // Some commands had written everything before the reader closed the pipe.
        #expect(gone == .exited(1) || gone == .exited(0), "\(words)")
        #expect(quiet.errors.isEmpty, "\(words): \(quiet.errors)")
      }
      #expect(server.folder.files().count == 1)
    }

    @Test func aReportThatCannotBeWrittenEndsNoUpload() async throws {
      let file = try scratch.file("a.jpg", 10)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await end("> /dev/full", ["push", file, server.url]).end == .exited(0))
      #expect(server.folder.files().count == 1)
    }
  }
}
