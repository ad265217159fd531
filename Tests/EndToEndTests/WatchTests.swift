import Foundation
import Testing

extension EndToEnd {
  /// `fullbore watch`: existing files, and all files that arrive later.
  @Suite(.serialized) struct WatchTests {
    let scratch = try! Scratch()

    func gallery(_ name: String) -> String { scratch.path("gallery/\(name)") }

    @Test func watchSendsExistingAndNewFiles() async throws {
      try scratch.file("gallery/2023/IMG_1.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      for number in 2..<20 { try scratch.file("gallery/2023/IMG_\(number).jpg", 10_000 * number) }
      try scratch.file("gallery/video.mov", 12 << 20)
      try await watch.expectSame(at: server.folder)
      // One folder is moved in complete, and one is created while the watch runs, with files at every depth.
      try scratch.file("elsewhere/a/b/IMG_1.jpg", 20_000)
      try scratch.file("elsewhere/IMG_2.jpg", 20_001)
      #expect(rename(scratch.path("elsewhere"), gallery("moved")) == 0)
      for depth in 1...6 {
        let folder = (1...depth).map { "deep-\($0)" }.joined(separator: "/")
        for number in 0..<10 { try scratch.file("gallery/\(folder)/IMG_\(number).jpg", 1000 * depth + number) }
      }
      try await watch.expectSame(at: server.folder)
      // Folders that were created later are watched like the others.
      try scratch.file("gallery/moved/a/b/IMG_3.jpg", 20_002)
      try scratch.file("gallery/deep-1/deep-2/deep-3/IMG_11.jpg", 20_003)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(!watch.command.output.contains("failed"), "\(watch.command.output)")
    }

    /// The writer keeps the file open, with pauses longer than the time that a file must rest.
    @Test func watchWaitsWhileAFileIsBeingWritten() async throws {
      try scratch.folder("gallery")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      let go = scratch.path("go")
      let recorder = try Command(
        "bash",
        [
          "-c", "exec 3>\"$0\"; echo first >&3; until [ -e \"$1\" ]; do sleep 0.05; done; echo last >&3",
          gallery("film.mov"), go,
        ],
        in: scratch)
      // A link has no closing writer, so each link waits until the file has rested. Then it has been checked twice.
      let photo = try scratch.file("IMG.jpg", 10_000)
      for number in 0..<3 {
        #expect(link(photo, gallery("IMG_\(number).jpg")) == 0)
        try await watch.until("IMG_\(number) arrives") { server.folder.files()["IMG_\(number).jpg"] }
      }
      #expect(server.folder.files()["film.mov"] == nil)
      try Data().write(to: URL(fileURLWithPath: go))
      try await recorder.wait()
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("4 files sent"), "\(watch.command.output)")
    }

    /// A folder that is moved away for a moment, such as by a program that rearranges a gallery. Nothing that was written
    /// before is forgotten. `isParent`: a folder above it is moved, which the system does not report.
    @Test(arguments: [false, true]) func filesWrittenBeforeTheFolderMovedArrive(_ isParent: Bool) async throws {
      try scratch.file("home/gallery/IMG_1.jpg", 10_000)
      #expect(symlink("home/gallery", scratch.path("gallery")) == 0)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.until("IMG_1 arrives") { server.folder.files()["IMG_1.jpg"] }
      try scratch.file("home/gallery/IMG_2.jpg", 20_000)
      try scratch.file("home/gallery/day/IMG_3.jpg", 30_000)
      let place = scratch.path(isParent ? "home" : "home/gallery")
      #expect(rename(place, place + ".away") == 0)
      try await Task.sleep(for: .seconds(1))
      #expect(rename(place + ".away", place) == 0)
      for name in ["IMG_2.jpg", "day/IMG_3.jpg"] {
        try await watch.until("\(name) arrives") { server.folder.files()[name] }
      }
      #expect(try await watch.stop() == .exited(130))
    }

    @Test func downloadsArriveUnderTheNameTheyAreGivenInTheEnd() async throws {
      try scratch.folder("gallery")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--exclude", "*.part")
      for number in 0..<5 {
        try scratch.file("gallery/IMG_\(number).jpg.part", 50_000 + number)
        #expect(rename(gallery("IMG_\(number).jpg.part"), gallery("IMG_\(number).jpg")) == 0)
        try scratch.file("gallery/.IMG_\(number).jpg.hidden", 60_000 + number)
        #expect(rename(gallery(".IMG_\(number).jpg.hidden"), gallery("second-\(number).jpg")) == 0)
      }
      try await watch.expectSame(at: server.folder)
      // A renamed file or folder exists at the server under both names.
      try scratch.file("gallery/day/IMG_1.jpg", 70_000)
      try await watch.expectSame(at: server.folder)
      #expect(
        rename(gallery("IMG_1.jpg"), gallery("renamed.jpg")) == 0 && rename(gallery("day"), gallery("night")) == 0)
      try await watch.until("new names arrive") {
        let names = server.folder.files()
        return names["renamed.jpg"] == 50_001 && names["night/IMG_1.jpg"] == 70_000 ? true : nil
      }
      try scratch.file("gallery/night/IMG_2.jpg", 70_002)
      try await watch.until("what comes after arrives") { server.folder.files()["night/IMG_2.jpg"] }
      #expect(server.folder.files()["day/IMG_1.jpg"] == 70_000 && server.folder.files()["day/IMG_2.jpg"] == nil)
      #expect(try await watch.stop() == .exited(130))
      #expect(!watch.command.output.contains("failed"), "\(watch.command.output)")
    }

    /// Files are renamed and rewritten while they are read: nothing fails, and the last version is stored in the end.
    @Test func filesThatChangeWhileTheyAreReadAreSentAgain() async throws {
      try scratch.file("gallery/moving.mov", 12 << 20)
      try scratch.file("gallery/rewritten.mov", 12 << 20, seed: 7)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try WatchProcess.startBlind(to: server.url, in: scratch, ["--bwlimit", "12M", "--overwrite"])
      try await watch.until("both are under way") { server.folder.unfinished() > 3 << 20 ? true : nil }
      #expect(rename(gallery("moving.mov"), gallery("moved.mov")) == 0)
      try scratch.file("gallery/rewritten.mov", 11 << 20, seed: 8)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("2 files sent"), "\(watch.command.output)")
      #expect(!watch.command.output.contains("failed"), "\(watch.command.output)\(watch.command.errors)")
    }

    /// Another folder replaces one with an active upload. That upload continues to its end, and the new content
    /// follows.
    @Test func aFolderThatReplacesAnotherArrives() async throws {
      try scratch.file("gallery/day/film.mov", 8 << 20)
      try scratch.file("aside/film.mov", 7 << 20, seed: 9)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try WatchProcess.startBlind(to: "put+" + server.url, in: scratch, ["--bwlimit", "4M", "--overwrite"])
      try await watch.until("it is under way") { server.folder.unfinished() > 1 << 20 ? true : nil }
      #expect(rename(gallery("day"), gallery("gone")) == 0 && rename(scratch.path("aside"), gallery("day")) == 0)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("3 files sent"), "\(watch.command.output)")
    }

    /// The watch is stopped while more events occur than inotify's queue holds.
    @Test func watchFindsFilesWhoseEventsWereLost() async throws {
      try scratch.folder("gallery/many")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
      let queue = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
      watch.command.kill(SIGSTOP)
      // Each link is an event. The last file is beyond the queue's capacity.
      let photo = try scratch.file("IMG.jpg", 10_000)
      for number in 0..<(queue + 100) {
        let path = gallery("many/\(number)")
        #expect(link(photo, path) == 0 && (number < 20 || unlink(path) == 0))
      }
      try scratch.file("gallery/many/deep/last.jpg", 10_000)
      watch.command.kill(SIGCONT)
      try await watch.until("it notices") { watch.command.errors.contains("queue of notices was full") ? true : nil }
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
    }

    @Test func killedAndStartedAgainNothingIsLostOrSentTwice() async throws {
      try scratch.file("gallery/video.mov", 24 << 20)
      for number in 0..<20 { try scratch.file("gallery/IMG_\(number).jpg", 20_000 + number) }
      let server = try await ServeProcess.start(in: scratch)
      var watch = try WatchProcess.startBlind(to: server.url, in: scratch, ["--bwlimit", "8M"])
      try await watch.until("a part has arrived") { server.folder.unfinished() > 4 << 20 ? true : nil }
      #expect(try await watch.stop(SIGKILL) == .killed(by: SIGKILL))
      // The watch does not run here.
      try scratch.file("gallery/new/IMG_20.jpg", 30_000)
      watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop(SIGINT) == .exited(130))
      #expect(watch.command.output.contains("video.mov  24.0 MiB  resumed at byte"), "\(watch.command.output)")

      watch = try await WatchProcess.start(to: server.url, in: scratch)
      try scratch.file("gallery/IMG_21.jpg", 30_000)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("1 file sent"), "\(watch.command.output)")
      #expect(watch.command.output.contains("22 done before, not asked"), "\(watch.command.output)")
      let (_, status) = try await fullbore("status", "--json", in: scratch)
      #expect(!status.output.contains(#""event":"file""#), "\(status.output)")
    }

    /// The server is unavailable at the start, and again in the middle of a file, for longer than a push would retry.
    @Test(arguments: ["", "put+", "resumable+"]) func aServerThatIsAwayIsTriedAgain(_ uploadProtocol: String)
      async throws
    {
      var server = try await ServeProcess.start(in: scratch)
      server.command.kill(SIGKILL)
      try await server.command.wait()
      try scratch.file("gallery/IMG_1.jpg", 20_000)
      let watch = try WatchProcess.startBlind(
        to: uploadProtocol + server.url, in: scratch, ["--retries", "1", "--bwlimit", "16M"])
      try await watch.until("it says so") { watch.command.errors.contains("trying again") ? true : nil }
      server = try await server.startAgain(in: scratch)
      try await watch.expectSame(at: server.folder)

      try scratch.file("gallery/video.mov", 16 << 20)
      try await watch.until("a part has arrived") { [server] in server.folder.unfinished() > 4 << 20 ? true : nil }
      let before = watch.command.errors.components(separatedBy: "trying again").count
      server.command.kill(SIGKILL)
      try await server.command.wait()
      try scratch.file("gallery/new/IMG_2.jpg", 20_001)
      try await watch.until("it says so again") {
        watch.command.errors.components(separatedBy: "trying again").count > before ? true : nil
      }
      server = try await server.startAgain(in: scratch)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("3 files sent"), "\(watch.command.output)\(watch.command.errors)")
    }

    @Test func aFolderThatGoesAwayIsWaitedFor() async throws {
      try scratch.file("gallery/IMG_1.jpg", 20_000)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      #expect(rename(scratch.path("gallery"), scratch.path("card")) == 0)
      try await watch.until("it says so") { watch.command.errors.contains("is gone") ? true : nil }
      try scratch.file("card/IMG_2.jpg", 20_001)
      #expect(rename(scratch.path("card"), scratch.path("gallery")) == 0)
      try await watch.expectSame(at: server.folder)
      try scratch.file("gallery/IMG_3.jpg", 20_002)
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
    }

    /// A name with other bytes is refused once, and not tried forever.
    @Test func watchReportsARefusalOnce() async throws {
      try scratch.file("gallery/IMG_1.jpg", 20_000)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--rescan", "1s")
      try await watch.expectSame(at: server.folder)
      try scratch.file("gallery/IMG_1.jpg", 20_001, seed: 2)
      try await watch.until("it is told") { watch.command.errors.contains("--overwrite") ? true : nil }
      for number in 2..<5 {
        try scratch.file("gallery/IMG_\(number).jpg", 20_000)
        try await watch.until("others arrive") { watch.command.output.contains("IMG_\(number).jpg  ") ? true : nil }
      }
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.errors.components(separatedBy: "--overwrite").count == 2, "\(watch.command.errors)")
      #expect(watch.command.output.contains("4 files sent"), "\(watch.command.output)")
      #expect(watch.command.output.contains("1 failed"), "\(watch.command.output)")
    }

    @Test func aDestinationThatRefusesUsFromTheBeginningEndsIt() async throws {
      try scratch.file("gallery/IMG_1.jpg", 20_000)
      let token = scratch.path("token")
      try Data("right\n".utf8).write(to: URL(fileURLWithPath: token))
      #expect(chmod(token, 0o600) == 0)
      let server = try await ServeProcess.start(in: scratch, "--token-file", token)
      let watch = try WatchProcess.startBlind(to: server.url, in: scratch, [])
      #expect(try await watch.command.wait() == .exited(3))
      #expect(watch.command.errors.contains("401"), "\(watch.command.errors)")
    }

    @Test func memoryStaysWhileFilesComeAndGo() async throws {
      try scratch.folder("gallery")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      var sizes: [Int] = []
      let rounds = Tool.number("FULLBORE_WATCH_ROUNDS", default: 12)
      for round in 0..<rounds {
        let folder = try scratch.folder("gallery/\(round)")
        for number in 0..<500 {
          try Data("\(round) \(number)".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(number)"))
        }
        try await watch.until("round \(round) has arrived") {
          Folder("\(server.folder.path)/\(round)").files().count == 500 ? true : nil
        }
        try FileManager.default.removeItem(atPath: folder)
        sizes.append(watch.command.peakMemory)
      }
      print("memory after each 500 files: \(sizes.map { $0 >> 10 }) KiB, descriptors \(watch.command.descriptors)")
      #expect(sizes.last! < most(40 << 20))
      // Memory grows once in the first rounds: caches, connections, threads, some of them late and in one step. Memory
      // that grows with each file shows in the remaining rounds.
      #expect(sizes.last! - sizes[rounds / 2] < most(rounds / 2 * 512 << 10), "\(sizes)")
      #expect(try await watch.stop() == .exited(130))
    }

    /// The limit is the test's own, in a user namespace.
    @Test(.enabled(if: WatchProcess.canLimit, "unshare cannot set a limit of its own here"))
    func foldersBeyondTheWatchLimitAreScanned() async throws {
      for number in 0..<6 { try scratch.file("gallery/\(number)/IMG.jpg", 10_000) }
      let server = try await ServeProcess.start(in: scratch)
      let watch = try WatchProcess.startLimited(to: server.url, in: scratch, watches: 3, "--rescan", "1s")
      try await watch.until("it says so") {
        watch.command.errors.contains("fs.inotify.max_user_watches is too low") ? true : nil
      }
      try await watch.expectSame(at: server.folder)
      for number in 0..<6 { try scratch.file("gallery/\(number)/IMG_2.jpg", 10_001) }
      try await watch.expectSame(at: server.folder)
      #expect(watch.command.errors.components(separatedBy: "too low").count == 2, "\(watch.command.errors)")
      #expect(try await watch.stop() == .exited(130))
    }
  }
}
