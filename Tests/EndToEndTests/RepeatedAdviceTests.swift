import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// Files that fail alike have short lines, and the advice is given once.
  @Suite(.serialized) struct RepeatedAdviceTests {
    let scratch = try! Scratch()

    /// Names that are taken at the destination, and names that another file of the push has.
    @Test(arguments: [true, false]) func filesThatFailAlikeAreAdvisedOnce(isTakenThere: Bool) async throws {
      let names = (1...5).map { "IMG_\($0).JPG" }
      for name in names {
        try scratch.photo("one/\(name)", seed: 1)
        try scratch.photo("two/\(name)", seed: 2)
      }
      let server = try await ServeProcess.start(in: scratch)
      let (one, two) = (scratch.path("one/"), scratch.path("two/"))
      #expect(try await fullbore("push", one, server.url, in: scratch).end == .exited(0))
      let words = ["push"] + (isTakenThere ? [two] : [one, two]) + [server.url]
      let push = try Command(Tool.fullbore, words, in: scratch)
      #expect(try await push.wait() == .exited(1))
      let lines = push.errors.split(separator: "\n")
      for name in names { #expect(lines.contains { $0.hasPrefix("fullbore: \(name): ") }, "\(push.errors)") }
      #expect(lines.count == 5, "\(push.errors)")
      #expect(lines.count { $0.contains("--on-conflict rename") } == 1, "\(push.errors)")
      for line in lines where !line.contains("--on-conflict rename") {
        #expect(line.count < 120 + 2 * scratch.path.count, "\(line)")
      }
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(status.output.components(separatedBy: "--on-conflict rename").count == 2, "\(status.output)")
      // A program reads each event by itself.
      let json = try Command(Tool.fullbore, words + ["--json"], in: scratch)
      #expect(try await json.wait() == .exited(1))
      let failures = json.output.split(separator: "\n").filter { $0.contains(#""event":"failed""#) }
      #expect(failures.count == 5 && failures.allSatisfy { $0.contains("--on-conflict rename") }, "\(failures)")
    }

    @Test func aDryRunAdvisesOnce() async throws {
      for number in 1...3 {
        try scratch.photo("one/\(number).jpg", seed: 1)
        try scratch.photo("two/\(number).jpg", seed: 2)
      }
      let run = try await fullbore(
        "push", "-n", scratch.path("one/"), scratch.path("two/"), "http://127.0.0.1:9/", in: scratch)
      #expect(run.command.errors.split(separator: "\n").count { $0.contains("has that name in this push") } == 3)
      #expect(run.command.errors.components(separatedBy: "--on-conflict rename").count == 2, "\(run.command.errors)")
    }
  }
}
