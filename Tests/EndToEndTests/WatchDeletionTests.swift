import Foundation
import Testing

extension EndToEnd {
  /// A watch gives up the unfinished uploads of files that were deleted.
  @Suite(.serialized) struct WatchDeletionTests {
    let scratch = try! Scratch()

    private func startSlow(_ server: ServeProcess) throws -> WatchProcess {
      try WatchProcess.startBlind(to: "tus+" + server.url, in: scratch, ["--bwlimit", "4M"])
    }

    private func untilSomeHasArrived(_ watch: WatchProcess, _ server: ServeProcess) async throws {
      try await watch.until("some has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
    }

    /// Expects that neither the journal nor the server has an unfinished upload.
    private func expectNothingLeft(at server: ServeProcess) async throws {
      #expect(server.folder.unfinished() == 0)
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      let status = try await fullbore("status", in: scratch).command.output
      #expect(!status.contains("film.mov"), "\(status)")
    }

    /// The system ends the watch of a deleted folder only when the last program has closed it. Another folder has its name then.
    @Test(arguments: [true, false]) func aFolderInThePlaceOfADeletedOneIsSent(_ isMoved: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("gallery/day/one.jpg", 1000, seed: 1)
      try scratch.file("gallery/next/two.jpg", 1000, seed: 2)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.until("both have arrived") { server.folder.files().count == 2 ? true : nil }
      let day = scratch.path("gallery/day")
      let descriptor = open(day, O_RDONLY | O_DIRECTORY)
      #expect(descriptor >= 0)
      defer { close(descriptor) }
      try FileManager.default.removeItem(atPath: day)
      if isMoved {
        #expect(rename(scratch.path("gallery/next"), day) == 0)
      } else {
        try scratch.file("gallery/day/two.jpg", 1000, seed: 2)
      }
      try await watch.until("the folder has arrived under its name", .seconds(20)) {
        server.folder.files()["day/two.jpg"] == 1000 ? true : nil
      }
      #expect(try await watch.stop() == .exited(130))
    }

    @Test func theUploadOfAFileDeletedOnTheWayIsEndedHereAndThere() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let film = try scratch.file("gallery/film.mov", 8 << 20)
      let watch = try startSlow(server)
      try await untilSomeHasArrived(watch, server)
      try FileManager.default.removeItem(atPath: film)
      try await watch.until("it says so") { watch.command.errors.contains("is given up") ? true : nil }
      #expect(watch.command.errors.components(separatedBy: "is given up").count == 2, "\(watch.command.errors)")
      #expect(try await watch.stop() == .exited(130))
      try await expectNothingLeft(at: server)
    }

    /// The whole folder of the file is deleted while no watch runs.
    @Test func theNextWatchEndsTheUploadOfAFileThatIsGone() async throws {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("gallery/day/film.mov", 8 << 20)
      let watch = try startSlow(server)
      try await untilSomeHasArrived(watch, server)
      watch.command.kill(SIGKILL)
      try await watch.command.wait()
      try FileManager.default.removeItem(atPath: scratch.path("gallery/day"))
      #expect(server.folder.unfinished() > 1 << 20)
      let next = try await WatchProcess.start(to: "tus+" + server.url, in: scratch)
      try await next.until("it says so") { next.command.errors.contains("is given up") ? true : nil }
      #expect(try await next.stop() == .exited(130))
      try await expectNothingLeft(at: server)
    }

    /// An upload of another folder is not the watch's to give up.
    @Test func watchKeepsTheUploadsOfAnotherFolder() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let other = try scratch.file("other/film.mov", 12 << 20)
      let push = try Command.fullbore("push", "--bwlimit", "8M", other, "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      try FileManager.default.removeItem(atPath: other)
      let film = try scratch.file("gallery/own.mov", 8 << 20)
      let watch = try startSlow(server)
      let before = server.folder.unfinished()
      try await watch.until("some has arrived") { server.folder.unfinished() > before + 1 << 20 ? true : nil }
      try FileManager.default.removeItem(atPath: film)
      try await watch.until("it says so") { watch.command.errors.contains("is given up") ? true : nil }
      #expect(!watch.command.errors.contains("film.mov"), "\(watch.command.errors)")
      #expect(try await watch.stop() == .exited(130))
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(1) && resume.errors.contains("the source is gone, \(other)"), "\(resume.errors)")
    }
  }
}
