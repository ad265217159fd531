import Foundation
import Testing

// A watch that has nothing to do, and what it does with files that have arrived.
extension EndToEnd.WatchTests {
  /// The watch prints nothing without an event, so that a program that reads its output is not woken.
  @Test func nothingIsSaidWhileNothingHappens() async throws {
    let photo = try scratch.file("gallery/IMG_1.jpg", 10_000)
    let server = try await ServeProcess.start(in: scratch)
    let watch = try WatchProcess.startBlind(to: server.url, in: scratch, settle: "1s", ["--json"])
    func done(_ count: Int) async throws {
      try await watch.until("\(count) are done") {
        watch.command.output.components(separatedBy: #""event":"done""#).count > count ? true : nil
      }
    }
    try await done(1)
    // A link is sent only after a second, in which an upload would report its progress ten times.
    #expect(link(photo, gallery("IMG_2.jpg")) == 0)
    try await done(2)
    let lines = watch.command.output.split(separator: "\n")
    let first = try #require(lines.firstIndex { $0.contains(#""event":"done""#) })
    let second = try #require(lines.lastIndex { $0.contains(#""event":"start""#) })
    let progress = lines[first..<second].filter { $0.contains(#""event":"progress""#) }
    #expect(progress.count <= 4, "\(progress)")
    #expect(try await watch.stop() == .exited(130))
  }

  /// The program moves what has arrived out of the watched folder.
  @Test func aProgramIsRunForEachFileThatHasArrived() async throws {
    let server = try await ServeProcess.start(in: scratch)
    try scratch.folder("moved")
    try scratch.file("gallery/a 1.jpg", 20_000)
    let program = scratch.path("done.sh")
    let text = "#!/bin/sh\necho \"$#\" >>'\(scratch.path("counts"))'\nmv \"$1\" '\(scratch.path("moved"))/'\n"
    try text.write(toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let watch = try await WatchProcess.start(to: server.url, in: scratch, "--on-done", program)
    try scratch.file("gallery/trip/b.jpg", 30_000)
    try await watch.until("both were moved") {
      FileManager.default.fileExists(atPath: scratch.path("moved/a 1.jpg"))
        && FileManager.default.fileExists(atPath: scratch.path("moved/b.jpg")) ? true : nil
    }
    #expect(server.folder.received() == 50_000)
    #expect(try String(contentsOfFile: scratch.path("counts"), encoding: .utf8) == "1\n1\n")
    watch.command.kill(SIGTERM)
    #expect(try await watch.command.wait() == .exited(130), "\(watch.command.errors)")
    let wrong = try Command(
      Tool.fullbore, ["watch", "--on-done", scratch.path("missing"), scratch.path("gallery"), server.url], in: scratch
    )
    #expect(try await wrong.wait() == .exited(2))
    #expect(wrong.errors.contains("--on-done"), "\(wrong.errors)")
  }

  /// A recording goes on while the program is busy with another file. The program must not delete what nobody has sent.
  @Test func aProgramGetsNoOtherVersionThanTheOneThatWasSent() async throws {
    let server = try await ServeProcess.start(in: scratch)
    try scratch.folder("gallery")
    let program = scratch.path("done.sh")
    let text = """
      #!/bin/sh
      while [ ! -e '\(scratch.path("go"))' ]; do sleep 0.1; done
      rm "$1"

      """
    try text.write(toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let watch = try await WatchProcess.start(to: server.url, in: scratch, "--on-done", program)
    try scratch.file("gallery/1.jpg", 20_000)
    try await watch.until("the first one is there") { server.folder.received() == 20_000 ? true : nil }
    let film = try scratch.file("gallery/2.mov", 10_000)
    try await watch.until("the second one is there") { server.folder.received() == 30_000 ? true : nil }
    watch.command.kill(SIGSTOP)
    let handle = try #require(FileHandle(forWritingAtPath: film))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(repeating: 7, count: 5_000))
    try handle.close()
    try scratch.file("go", 0)
    watch.command.kill(SIGCONT)
    try await watch.until("both are deleted") {
      let left = ["1.jpg", "2.mov"].filter { FileManager.default.fileExists(atPath: scratch.path("gallery/\($0)")) }
      return left.isEmpty ? true : nil
    }
    #expect(server.folder.received() == 35_000, "\(watch.command.output)\(watch.command.errors)")
    #expect(try await watch.stop() == .exited(130))
  }

  /// The program had not run for all files when the watch was killed.
  @Test func theNextWatchHandsOnWhatWasSent() async throws {
    let server = try await ServeProcess.start(in: scratch)
    let program = scratch.path("done.sh")
    try "#!/bin/sh\nrm \"$1\"\n".write(toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    let photo = try scratch.file("gallery/1.jpg", 20_000)
    let first = try await WatchProcess.start(to: server.url, in: scratch)
    try await first.until("it is there") { server.folder.received() == 20_000 ? true : nil }
    first.command.kill(SIGKILL)
    try await first.command.wait()
    let second = try await WatchProcess.start(to: server.url, in: scratch, "--on-done", program)
    try await second.until("it is deleted") { FileManager.default.fileExists(atPath: photo) ? nil : true }
    #expect(try await second.stop() == .exited(130))
  }

  /// A program that opens the file for each piece that it writes. Without `--settle`, each closing would send the file.
  @Test func aClosedFileWaitsForTheTimeThatIsGiven() async throws {
    try scratch.folder("gallery")
    let server = try await ServeProcess.start(in: scratch)
    let watch = try WatchProcess.startBlind(to: server.url, in: scratch, settle: "3s", [])
    try await watch.until("it watches") { watch.command.errors.contains("watching ") ? true : nil }
    let film = scratch.path("gallery/film.mov")
    try Data().write(to: URL(fileURLWithPath: film))
    for _ in 0..<5 {
      let handle = try #require(FileHandle(forWritingAtPath: film))
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(repeating: 7, count: 5_000))
      try handle.close()
      try await Task.sleep(for: .milliseconds(400))
    }
    try await watch.until("it is there") { server.folder.received() == 25_000 ? true : nil }
    #expect(try await watch.stop() == .exited(130))
    #expect(watch.command.output.components(separatedBy: "film.mov  ").count == 2, "\(watch.command.output)")
  }
}
