import BlobSQLite
import BlobTesting
import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// Sources of every kind are handled in the same way.
  @Suite(.serialized) struct SourceKindTests {
    let scratch = try! Scratch()

    /// One source of each kind, in this order: a file by its URL, a folder, a database row, a web page.
    private func sources(_ other: ServeProcess, _ size: Int) throws -> [String] {
      try scratch.file("a b.mov", size, seed: 1)
      try scratch.file("roll/2023/IMG_1.jpg", 20_000, seed: 2)
      try scratch.file("received/remote.mov", size, seed: 3)
      let database = try Database(BytePath(scratch.path("album.db")))
      try database.execute("CREATE TABLE photo(id INTEGER PRIMARY KEY, file TEXT, version INTEGER, data BLOB)")
      let insert = try database.statement("INSERT INTO photo VALUES(1, 'row.mov', 1, ?1)")
      try insert.bind(1, PatternSource(length: Int64(size), seed: 4).bytes(count: size))
      try insert.run()
      return [
        "file://\(scratch.path("a%20b.mov"))", "file:\(scratch.path("roll"))",
        "sqlite:\(scratch.path("album.db"))?table=photo&column=data&name=file&version=version",
        "\(other.url)remote.mov",
      ]
    }

    private func expectAll(_ size: Int, at folder: Folder) {
      #expect(
        folder.files() == ["a b.mov": size, "roll/2023/IMG_1.jpg": 20_000, "row.mov": size, "remote.mov": size])
      for (name, place) in [("a b.mov", "a b.mov"), ("remote.mov", "received/remote.mov")] {
        #expect(FileManager.default.contentsEqual(atPath: "\(folder.path)/\(name)", andPath: scratch.path(place)))
      }
      let row = FileManager.default.contents(atPath: "\(folder.path)/row.mov").map { Array($0) }
      let isSame = row == PatternSource(length: Int64(size), seed: 4).bytes(count: size)
      #expect(isSame)
    }

    /// The server that contains one of the sources has its folder in `scratch`, so this one uses another.
    private func receiver() async throws -> (Scratch, ServeProcess) {
      let place = try Scratch()
      return (place, try await ServeProcess.start(in: place))
    }

    @Test(arguments: ["tus+", "put+"]) func oneCommandTakesEveryKind(_ uploadProtocol: String) async throws {
      let other = try await ServeProcess.start(in: scratch)
      let (place, server) = try await receiver()
      let words = try sources(other, 3 << 20)
      let dry = try Command(Tool.fullbore, ["push", "--dry-run"] + words + [uploadProtocol + server.url], in: scratch)
      #expect(try await dry.wait() == .exited(0), "\(dry.errors)")
      for name in ["a b.mov  3.00 MiB", "roll/2023/IMG_1.jpg", "row.mov  sqlite:", "remote.mov  http:", "4 files"] {
        #expect(dry.output.contains(name), "\(dry.output)")
      }
      let list = try Command(
        Tool.fullbore, ["push", "-n", "--json"] + words + [uploadProtocol + server.url], in: scratch)
      #expect(try await list.wait() == .exited(0), "\(list.errors)")
      #expect(list.output.split(separator: "\n").allSatisfy { $0.hasPrefix("{\"event\":") }, "\(list.output)")
      #expect(list.output.contains(#""path":"a b.mov","length":3145728"#), "\(list.output)")
      #expect(server.folder.files().isEmpty)
      for result in ["4 files sent", "4 done before"] {
        let push = try Command(Tool.fullbore, ["push"] + words + [uploadProtocol + server.url], in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        #expect(push.output.contains(result), "\(push.output)")
      }
      withExtendedLifetime(place) { expectAll(3 << 20, at: server.folder) }
    }

    @Test func patternsChooseAmongEveryKind() async throws {
      let other = try await ServeProcess.start(in: scratch)
      let (place, server) = try await receiver()
      let words = try sources(other, 1000)
      for (folder, patterns, files) in [
        ("a/", ["--exclude", "*.mov"], ["roll/2023/IMG_1.jpg"]), ("b/", ["--include", "row.mov"], ["row.mov"]),
        ("c/", ["--include", "remote*", "--include", "roll/"], ["remote.mov", "roll/2023/IMG_1.jpg"]),
      ] {
        for command in ["push", "check"] {
          let run = try Command(Tool.fullbore, [command] + patterns + words + [server.url + folder], in: scratch)
          #expect(try await run.wait() == .exited(0), "\(run.output)\(run.errors)")
          #expect(!run.errors.contains("matched nothing"), "\(run.errors)")
        }
        #expect(Folder("\(server.folder.path)/\(folder)").files().keys.sorted() == files)
      }
      let before = server.folder.files()
      for source in words.dropFirst(2) {
        let (end, push) = try await fullbore("push", "--exclude", "*.mov", source, server.url, in: scratch)
        #expect(end == .exited(1), "\(push.output)\(push.errors)")
        #expect(
          push.errors.contains("nothing is sent: --exclude leaves out all there is, 1 file or folder\n"),
          "\(push.errors)")
      }
      let pipe = try Command(
        "/bin/sh", ["-c", "echo hello | \"$0\" push --exclude '*.bin' - \(server.url)p.bin", Tool.fullbore], in: scratch
      )
      #expect(try await pipe.wait() == .exited(1), "\(pipe.output)\(pipe.errors)")
      #expect(pipe.errors.contains("nothing is sent: --exclude leaves out"), "\(pipe.errors)")
      withExtendedLifetime(place) { #expect(server.folder.files() == before) }
    }

    @Test func aKilledPushOfEveryKindOfSourceIsResumed() async throws {
      let other = try await ServeProcess.start(in: scratch)
      let (place, server) = try await receiver()
      let words = try sources(other, 9 << 20)
      let push = try Command(
        Tool.fullbore, ["push", "--bwlimit", "9M", "--part-size", "1M"] + words + ["tus+" + server.url], in: scratch)
      try await until("parts of all have arrived: \(push.errors)") {
        server.folder.unfinished() >= 10 << 20 || push.end != nil ? true : nil
      }
      push.kill(SIGKILL)
      #expect(try await push.wait() == .killed(by: SIGKILL))
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(resume.output.components(separatedBy: "resumed at byte").count == 4, "\(resume.output)")
      withExtendedLifetime(place) { expectAll(9 << 20, at: server.folder) }
    }

    @Test func aFileURLOfAnotherMachineIsRefused() async throws {
      for url in ["file://elsewhere/a.mov", "file:relative", "file:///%zz"] {
        let (end, push) = try await fullbore("push", url, "http://127.0.0.1:9/", in: scratch)
        #expect(end == .exited(2) && push.errors.contains("file:"), "\(push.errors)")
      }
    }
  }
}
