import Foundation
import Testing

extension EndToEnd {
  /// The resources that a push of any size may use: 40 MiB of memory, and no temporary file.
  @Suite(.serialized) struct LimitTests {
    let scratch = try! Scratch()
    private static let memory = 40 << 20

    /// The kernel kills a process that writes more than 1 MiB to a file.
    @Test(arguments: ["put+", "tus+", "resumable+"])
    func largePushWritesNoTemporaryFile(_ uploadProtocol: String) async throws {
      let size = 512 << 20
      let file = try scratch.hole("video.mov", size)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        "bash", ["-c", "ulimit -f 1024; exec \"$0\" \"$@\"", Tool.fullbore, "push", file, uploadProtocol + server.url],
        in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files() == ["video.mov": size])
      #expect(push.peakMemory > 1 << 20)
      #expect(push.peakMemory <= Self.memory, "\(push.peakMemory >> 20) MiB")
      #expect(server.command.peakMemory <= Self.memory, "the server took \(server.command.peakMemory >> 20) MiB")
    }

    /// If the process has several threads, Linux makes it wait each time the table grows.
    @Test func theTableOfOpenFilesIsLargeFromTheStart() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let status = try String(contentsOfFile: "/proc/\(server.command.pid)/status", encoding: .utf8)
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("FDSize:") })
      #expect(Int(line.split(separator: "\t").last ?? "") ?? 0 >= 1024, "\(line)")
    }

    /// Root has no such limit, so the program runs as another user, who may not be able to read the folder of the build.
    @Test func theErrorSaysThatThereAreTooFewThreads() async throws {
      let limited = try Command(
        "bash",
        [
          "-c",
          """
          if [ "$(id -u)" != 0 ]; then exec prlimit --nproc=3 "$0" --version; fi
          cp "$0" "$1/copy" && chmod 755 "$1" "$1/copy"
          exec setpriv --reuid=65534 --clear-groups prlimit --nproc=3 "$1/copy" --version
          """, Tool.fullbore, scratch.path(""),
        ], in: scratch)
      try await limited.wait()
      #expect(limited.end == .exited(1))
      #expect("\(limited.errors)".contains("too few processes and threads"), "\(limited.errors)")
    }

    /// Each further file would be sent to be refused.
    @Test func aServerWithoutRoomEndsThePushAfterAFewFiles() async throws {
      for number in 0..<30 { try scratch.file("gallery/\(number).jpg", 100_000) }
      let server = try await ServeProcess.start(in: scratch, "--max-total", "250k")
      let (end, push) = try await fullbore(
        "push", "--jobs", "1", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(3), "\(push.errors)")
      #expect(push.errors.contains("3 files in a row") && push.errors.contains("Make room there"), "\(push.errors)")
      #expect(push.errors.components(separatedBy: "507").count < 8, "\(push.errors)")
      #expect(server.folder.files().count == 2)
    }

    /// A file with the same bytes needs no room.
    @Test(arguments: ["", "put+", "tus+", "resumable+"], [1000, 100_000])
    func aServerWithoutRoomStillHasWhatItHas(_ uploadProtocol: String, _ size: Int) async throws {
      for name in ["a.jpg", "b.jpg"] { try scratch.file("gallery/\(name)", size) }
      let server = try await ServeProcess.start(in: scratch, "--max-total", "\(size * 5 / 2)")
      for _ in 0..<2 {
        let (end, push) = try await fullbore(
          "push", "--journal", scratch.newPath("journal"), scratch.path("gallery/"), uploadProtocol + server.url,
          in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
      }
      try scratch.file("other/a.jpg", size, seed: 2)
      let (end, push) = try await fullbore(
        "push", "--journal", scratch.newPath("journal"), scratch.path("other/"), uploadProtocol + server.url,
        in: scratch)
      #expect(end != .exited(0) && push.errors.contains("507"), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    private func push(withOpenFiles limit: Int, to url: String) async throws -> Command {
      for number in 0..<300 { try scratch.file("gallery/\(number).jpg", 3000) }
      try scratch.file("gallery/film.mov", 8 << 20)
      let push = try Command(
        "bash",
        ["-c", "ulimit -n \(limit); exec \"$0\" \"$@\"", Tool.fullbore, "push", scratch.path("gallery/"), url],
        in: scratch)
      try await push.wait()
      return push
    }

    @Test(arguments: [("put+", 64), ("tus+", 64), ("tus+", 128), ("resumable+", 256)])
    func withFewOpenFilesEveryFileArrives(_ uploadProtocol: String, _ limit: Int) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try await push(withOpenFiles: limit, to: uploadProtocol + server.url)
      #expect(push.end == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(arguments: [10, 14, 20, 28]) func withTooFewOpenFilesAPushSaysSo(_ limit: Int) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let push = try await push(withOpenFiles: limit, to: "tus+" + server.url)
      let isSaid = "\(push.errors)".contains("open files") || "\(push.errors)".contains("Too many open files")
      #expect([.exited(0), .exited(1), .exited(3)].contains(push.end), "\(push.errors)")
      #expect(push.end == .exited(0) || isSaid, "\(push.errors)")
    }

    /// libdispatch ends the program by SIGILL if the files that it was started with leave it no descriptor.
    @Test(arguments: 4...16) func theFilesThatAProgramWasStartedWithCount(_ inherited: Int) async throws {
      try scratch.file("a.jpg", 10)
      let script = """
        for ((i = 3; i < 3 + $1; i++)); do eval "exec $i</dev/null"; done
        shift; ulimit -n 20; exec "$@"
        """
      let push = try Command(
        "bash",
        ["-c", script, "bash", "\(inherited)", Tool.fullbore, "push", scratch.path("a.jpg"), "http://127.0.0.1:9/"],
        in: scratch)
      let end = try await push.wait()
      #expect(end == .exited(1) && "\(push.errors)".contains("more open files"), "\(end) \(push.errors)")
    }

    @Test func manySmallFilesStayWithinMemoryAndJournal() async throws {
      let count = Tool.number("FULLBORE_FILES", default: 3000)
      try scratch.folder("gallery")
      for number in 0..<count {
        try Data("small file \(number)".utf8).write(to: URL(fileURLWithPath: scratch.path("gallery/\(number).jpg")))
      }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      #expect(server.folder.files().count == count)
      #expect(push.peakMemory <= Self.memory, "\(push.peakMemory >> 20) MiB")
      let journal = try ["", "-wal"].map { scratch.path("journal.sqlite" + $0) }
        .filter(FileManager.default.fileExists)
        .map { try FileManager.default.attributesOfItem(atPath: $0)[.size] as? Int ?? 0 }.reduce(0, +)
      #expect(journal <= count * 2048, "\(journal / count) bytes a file")
    }
  }
}
