import Foundation
import Testing

extension EndToEnd {
  /// Files with unusual times.
  @Suite(.serialized) struct FileTimeTests {
    let scratch = try! Scratch()

    @Test func filesOfAnyTimeAreReadAndSent() async throws {
      for (number, seconds) in [99_999_999_999, 9_300_000_000, -2_000_000_000, -1, 0].enumerated() {
        let file = try scratch.file("gallery/\(number).jpg", 10_000 + number)
        let time = timespec(tv_sec: seconds, tv_nsec: 0)
        #expect(utimensat(AT_FDCWD, file, [time, time], 0) == 0)
      }
      let gallery = scratch.path("gallery/")
      let files = (0..<5).map { "\(gallery)\($0).jpg" }
      let (end, sums) = try await run("checksum", files)
      #expect(end == .exited(0) && sums.output.split(separator: "\n").count == 5, "\(sums.errors)")
      for layout in [[], ["--layout", "{year}/{month}/{day}/{name}"]] {
        let (end, list) = try await run("push", ["-n", gallery, "http://127.0.0.1:1/"] + layout)
        #expect(end == .exited(0), "\(list.output)\(list.errors)")
      }
      let server = try await ServeProcess.start(in: scratch)
      for uploadProtocol in ["put+", "tus+", "resumable+"] {
        let (end, push) = try await run(
          "push", [gallery, "\(uploadProtocol)\(server.url)\(uploadProtocol.dropLast())/"])
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        Folder(gallery).expectSame(as: Folder("\(server.folder.path)/\(uploadProtocol.dropLast())"))
        // The second push recognizes the files.
        let (_, again) = try await run(
          "push", [gallery, "\(uploadProtocol)\(server.url)\(uploadProtocol.dropLast())/"])
        #expect(again.output.contains("5 done before"), "\(again.output)")
      }
    }

    private func run(_ command: String, _ arguments: [String]) async throws -> (end: Command.End, Command) {
      let program = try Command(Tool.fullbore, [command] + arguments, in: scratch)
      return (try await program.wait(), program)
    }
  }
}
