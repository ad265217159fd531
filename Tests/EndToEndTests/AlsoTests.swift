import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `push --also`: one push to several destinations.
  @Suite(.serialized) struct AlsoTests {
    let scratch = try! Scratch()
    /// The second server has its folder here.
    let elsewhere = try! Scratch()

    func servers(_ options: String...) async throws -> (ServeProcess, ServeProcess) {
      (
        try await ServeProcess.start(in: scratch, options: options),
        try await ServeProcess.start(in: elsewhere, options: options)
      )
    }

    func push(_ words: String..., environment: [String: String] = [:]) throws -> Command {
      try Command(Tool.fullbore, ["push"] + words, in: scratch, environment: environment)
    }

    func writePlaces(_ text: String) throws -> [String: String] {
      let path = try scratch.folder("config/fullbore") + "/config.toml"
      try text.write(toFile: path, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      return ["XDG_CONFIG_HOME": scratch.path("config")]
    }

    func events(of command: Command) throws -> [[String: Any]] {
      try command.output.split(separator: "\n").map { line in
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      }
    }

    @Test(arguments: ["tus+", "resumable+", "put+", ""])
    func everyFileArrivesAtBothAndIsNotSentTwice(_ uploadProtocol: String) async throws {
      for number in 0..<40 { try scratch.file("card/DCIM/IMG_\(number).JPG", 10_000 * number, seed: UInt64(number)) }
      try scratch.file("card/film.mov", 9 << 20)
      let (nas, cloud) = try await servers()
      func run(_ options: String...) async throws -> String {
        let push = try Command(
          Tool.fullbore,
          ["push"] + options + ["--also", "\(uploadProtocol)\(cloud.url)copy/", scratch.path("card/"), nas.url],
          in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        return push.output
      }
      let first = try await run()
      Folder(scratch.path("card")).expectSame(as: nas.folder)
      Folder(scratch.path("card")).expectSame(as: Folder(cloud.folder.path + "/copy"))
      #expect(first.components(separatedBy: "\n127.0.0.1:\(nas.port): 41 files sent").count == 2, "\(first)")
      #expect(first.components(separatedBy: "\n127.0.0.1:\(cloud.port): 41 files sent").count == 2, "\(first)")
      // The second push sends a file that is missing at one destination to that destination only.
      try scratch.file("card/new.JPG", 5_000)
      try FileManager.default.removeItem(atPath: cloud.folder.path + "/copy/DCIM/IMG_7.JPG")
      let second = try await run("--check", "--verify")
      #expect(second.contains("127.0.0.1:\(nas.port): 1 file sent"), "\(second)")
      #expect(second.contains("127.0.0.1:\(cloud.port): 2 files sent"), "\(second)")
      Folder(scratch.path("card")).expectSame(as: Folder(cloud.folder.path + "/copy"))
    }

    /// The other destination gets everything, the exit status says that one does not, and the same push completes it.
    @Test(arguments: [false, true]) func aServerThatDiesStopsNoOther(_ isFirst: Bool) async throws {
      for number in 0..<30 { try scratch.file("card/\(number).mov", 1 << 20, seed: UInt64(number)) }
      let (nas, cloud) = try await servers()
      let dying = isFirst ? nas : cloud
      let words = [
        "push", "--retries", "1", "--timeout", "2s", scratch.path("card/"), "tus+\(nas.url)", "--also",
        "tus+\(cloud.url)",
      ]
      let push = try Command(Tool.fullbore, words + ["--bwlimit", "16M"], in: scratch)
      try await until("some has arrived") { dying.folder.received() > 4 << 20 ? true : nil }
      dying.command.kill(SIGKILL)
      try await dying.command.wait()
      #expect(try await push.wait() == .exited(3), "\(push.output)\(push.errors)")
      let other = isFirst ? cloud : nas
      Folder(scratch.path("card")).expectSame(as: other.folder)
      #expect(push.output.contains("127.0.0.1:\(other.port): 30 files sent"), "\(push.output)")
      #expect(push.errors.contains("fullbore: 127.0.0.1:\(dying.port): "), "\(push.errors)")

      let again = try await dying.startAgain(in: isFirst ? scratch : elsewhere)
      let second = try Command(Tool.fullbore, words, in: scratch)
      #expect(try await second.wait() == .exited(0), "\(second.output)\(second.errors)")
      Folder(scratch.path("card")).expectSame(as: again.folder)
      #expect(
        second.output.contains("127.0.0.1:\(other.port): 0 files sent") && second.output.contains("30 done before"),
        "\(second.output)")
    }

    @Test func aKilledPushGoesOnAtBoth() async throws {
      try scratch.file("card/film.mov", 24 << 20)
      for number in 0..<20 { try scratch.file("card/\(number).JPG", 100_000, seed: UInt64(number)) }
      let (nas, cloud) = try await servers()
      let words = ["push", "--json", scratch.path("card/"), "tus+\(nas.url)", "--also", "tus+\(cloud.url)"]
      let push = try Command(Tool.fullbore, words + ["--bwlimit", "8M"], in: scratch)
      try await until("both have some of the film") {
        nas.folder.unfinished() > 2 << 20 && cloud.folder.unfinished() > 2 << 20 ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
      let status = try await fullbore("status", in: scratch).command.output
      #expect(status.contains(nas.url) && status.contains(cloud.url), "\(status)")
      let second = try Command(Tool.fullbore, words, in: scratch)
      #expect(try await second.wait() == .exited(0), "\(second.output)\(second.errors)")
      let resumed = try events(of: second).filter {
        $0["path"] as? String == "film.mov" && $0["resumed_from"] as? Int ?? 0 > 2 << 20
      }
      #expect(Set(resumed.compactMap { $0["destination"] as? String }) == [nas.url, cloud.url], "\(second.output)")
      Folder(scratch.path("card")).expectSame(as: nas.folder)
      Folder(scratch.path("card")).expectSame(as: cloud.folder)
    }

    @Test func eventsSayWhichDestinationTheyAreAbout() async throws {
      try scratch.file("card/a.JPG", 20_000)
      try scratch.file("card/b.JPG", 20_001)
      let (nas, cloud) = try await servers()
      try FileManager.default.createDirectory(atPath: cloud.folder.path, withIntermediateDirectories: true)
      try Data("other".utf8).write(to: URL(fileURLWithPath: cloud.folder.path + "/b.JPG"))
      let push = try push("--json", scratch.path("card/"), nas.url, "--also", cloud.url)
      #expect(try await push.wait() == .exited(1), "\(push.output)")
      let (schema, all) = (try EventSchema(), try events(of: push))
      for event in all { #expect(schema.fault(in: event) == nil, "\(event)") }
      func destinations(_ name: String, _ path: String? = nil) -> [String] {
        all.filter { $0["event"] as? String == name && (path == nil || $0["path"] as? String == path) }
          .compactMap { $0["destination"] as? String }.sorted()
      }
      #expect(destinations("done", "a.JPG") == [nas.url, cloud.url].sorted())
      #expect(destinations("done", "b.JPG") == [nas.url] && destinations("failed") == [cloud.url])
      let parts = try #require(all.last?["destinations"] as? [[String: Any]])
      #expect(parts.map { $0["destination"] as? String } == [nas.url, cloud.url])
      #expect(parts.map { $0["exit_status"] as? Int } == [0, 1])
      #expect(all.last?["files_found"] as? Int == 2 && all.last?["files_sent"] as? Int == 3, "\(push.output)")
    }

    /// Each destination has names of its own, and gives numbers of its own.
    @Test func eachDestinationGivesItsOwnNumbersAndFolders() async throws {
      try scratch.photo("card/IMG_1.JPG", seed: 1)
      let (nas, cloud) = try await servers()
      try Data("other".utf8).write(to: URL(fileURLWithPath: cloud.folder.path + "/IMG_1.JPG"))
      let environment = try writePlaces(
        "[places.nas]\nurl = \"\(nas.url)\"\nlayout = \"{year}/{name}\"\n[places.cloud]\nurl = \"\(cloud.url)\"\n")
      let push = try push(
        "--on-conflict", "rename", scratch.path("card/"), "nas:", "--also", "cloud:", environment: environment)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(nas.folder.files().keys.sorted() == ["2023/IMG_1.JPG"])
      #expect(cloud.folder.files().keys.sorted() == ["IMG_1-2.JPG", "IMG_1.JPG"])
      #expect(
        push.output.contains("nas: 2023/IMG_1.JPG") && push.output.contains("cloud: 1 file sent"), "\(push.output)")
      let dry = try self.push("-n", scratch.path("card/"), "nas:", "--also", "cloud:", environment: environment)
      #expect(try await dry.wait() == .exited(0))
      #expect(dry.output.contains("nas: 2023/IMG_1.JPG  19.5 KiB\ncloud: IMG_1.JPG  19.5 KiB"), "\(dry.output)")
    }

    @Test func theWorstDestinationDecidesOnTheExitStatus() async throws {
      try scratch.file("card/a.JPG", 20_000)
      let (nas, cloud) = try await servers()
      let refusing = HTTPPeer { _ in .init(403) }
      try Data("other".utf8).write(to: URL(fileURLWithPath: cloud.folder.path + "/a.JPG"))
      for (also, status) in [
        ([cloud.url], 1), (["put+\(refusing.url)"], 3), (["put+\(refusing.url)", cloud.url], 3),
        (["http://127.0.0.1:9/"], 3), (["\(nas.url)in/"], 2), (["\(nas.url)"], 2), (["none:"], 2),
      ] {
        let words = ["push", "--retries", "0", "--timeout", "2s", scratch.path("card/"), nas.url]
        let push = try Command(Tool.fullbore, words + also.flatMap { ["--also", $0] }, in: scratch)
        #expect(try await push.wait() == .exited(Int32(status)), "\(also): \(push.output)\(push.errors)")
      }
      #expect(nas.folder.files().keys.sorted() == ["a.JPG"])
    }
  }
}
