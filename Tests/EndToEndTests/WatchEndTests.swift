import Foundation
import Testing

extension EndToEnd {
  /// The last line of a watch that is interrupted says what is left.
  @Suite(.serialized) struct WatchEndTests {
    let scratch = try! Scratch()

    private func lastLine(_ watch: WatchProcess) -> Substring {
      watch.command.output.split(separator: "\n").last ?? ""
    }

    @Test func anIdleWatchLeavesNothing() async throws {
      try scratch.file("gallery/IMG_1.jpg", 30_000)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop(SIGINT) == .exited(130))
      let line = lastLine(watch)
      #expect(line.hasPrefix("watched for "), "\(line)")
      #expect(line.hasSuffix(": 1 file sent, 29.3 KiB; stopped: nothing is left to send"), "\(line)")
      #expect(!line.contains("/s"), "\(line)")
    }

    /// One file is being sent, and another program still writes the other one.
    @Test func aWatchThatSendsSaysHowMuchIsLeft() async throws {
      try scratch.file("gallery/film.mov", 24 << 20)
      let writer = try #require(FileHandle(forWritingAtPath: try scratch.file("gallery/IMG_1.jpg", 30_000)))
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--bwlimit", "2M")
      try await watch.until("a part has arrived") { server.folder.unfinished() > 0 ? true : nil }
      #expect(try await watch.stop(SIGINT) == .exited(130))
      try writer.close()
      let line = lastLine(watch)
      #expect(line.hasSuffix("stopped: 2 files are still to be sent; run it again to go on"), "\(line)")
    }

    /// A run that ends early may have taken files that it has not begun.
    @Test func afterAnOutageNothingIsLeft() async throws {
      try scratch.file("gallery/IMG_1.jpg", 30_000)
      var server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--retries", "1")
      try await watch.expectSame(at: server.folder)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      for number in 2...9 { try scratch.file("gallery/IMG_\(number).jpg", 30_000 + number) }
      try await watch.until("it has tried again for a while") {
        watch.command.errors.contains("does not answer since") ? true : nil
      }
      server = try await server.startAgain(in: scratch)
      try await watch.expectSame(at: server.folder)
      // A file that was offered while it was sent rests once more. A later file arrives after that.
      try scratch.file("gallery/IMG_10.jpg", 30_010)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop(SIGINT) == .exited(130))
      #expect(lastLine(watch).hasSuffix("stopped: nothing is left to send"), "\(lastLine(watch))")
      #expect(!watch.command.errors.contains("gave up"), "\(watch.command.errors)")
    }

    @Test func aWatchReportsThatItsDestinationIsUnreachable() async throws {
      try scratch.file("gallery/IMG_1.jpg", 30_000)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      try scratch.file("gallery/IMG_2.jpg", 30_000)
      try await watch.until("it knows that") { watch.command.errors.contains("trying again") ? true : nil }
      #expect(try await watch.stop(SIGINT) == .exited(130))
      let line = lastLine(watch)
      #expect(
        line.hasSuffix("stopped while the destination did not answer: run it again to send what is left")
          || line.hasSuffix("stopped: 1 file is still to be sent; run it again to go on"), "\(line)")
      let early = try WatchProcess.startBlind(to: server.url, in: scratch, [])
      try await early.until("it knows that") { early.command.errors.contains("trying again") ? true : nil }
      #expect(try await early.stop(SIGINT) == .exited(130))
      #expect(lastLine(early).contains("stopped while the destination did not answer: "), "\(lastLine(early))")
    }
  }
}
