import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `--on-conflict`, for two files of one push and for names that exist at the destination. No choice loses a photo with exit
  /// status 0.
  @Suite(.serialized) struct NameConflictTests {
    let scratch = try! Scratch()

    func push(_ words: String...) async throws -> (end: Command.End?, command: Command) {
      let command = try Command(Tool.fullbore, ["push"] + words, in: scratch)
      try await command.wait()
      return (command.end, command)
    }

    func bytes(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }

    func arrived(_ server: ServeProcess, _ name: String) -> Data? { bytes("\(server.folder.path)/\(name)") }

    @Test(arguments: ["", "put+", "tus+", "resumable+", "dav+"])
    func twoCamerasPhotosBothArriveUnderNamesOfTheirOwn(_ uploadProtocol: String) async throws {
      for (index, card) in ["one", "two", "three"].enumerated() {
        try scratch.photo("\(card)/IMG_0001.JPG", seed: UInt64(index + 1))
        try scratch.photo("\(card)/IMG_0002.JPG", seed: 7)
      }
      let server = try await ServeProcess.start(in: scratch)
      let words = [
        "--on-conflict", "rename", scratch.path("one/"), scratch.path("two/"), scratch.path("three/"),
        uploadProtocol + server.url,
      ]
      for round in 0..<2 {
        let command = try Command(Tool.fullbore, ["push"] + words, in: scratch)
        #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
        // Files with the same bytes are no conflict.
        #expect(
          server.folder.files().keys.sorted()
            == ["IMG_0001-2.JPG", "IMG_0001-3.JPG", "IMG_0001.JPG", "IMG_0002.JPG"])
        if round == 0 { #expect(command.output.contains("2 under a new name"), "\(command.output)") }
      }
      let contents = Set(["IMG_0001.JPG", "IMG_0001-2.JPG", "IMG_0001-3.JPG"].compactMap { arrived(server, $0) })
      #expect(contents == Set(["one", "two", "three"].compactMap { bytes(scratch.path("\($0)/IMG_0001.JPG")) }))
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(!status.output.contains("failed"), "\(status.output)")
    }

    @Test(arguments: ["", "put+", "tus+", "resumable+", "dav+"])
    func aNameThatExistsAtTheDestinationIsCountedOn(_ uploadProtocol: String) async throws {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      try scratch.photo("copy/IMG_0001.JPG", seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let url = uploadProtocol + server.url
      #expect(try await push(scratch.path("one/"), url).end == .exited(0))
      let (failed, first) = try await push(scratch.path("two/"), url)
      #expect(failed == .exited(1) && first.errors.contains("--on-conflict rename"), "\(first.errors)")
      // The push that had failed is mended by the same command with the option; run again, it sends nothing.
      for _ in 0..<2 {
        let (end, command) = try await push("--on-conflict", "rename", scratch.path("two/"), url)
        #expect(end == .exited(0), "\(command.output)\(command.errors)")
        #expect(server.folder.files().keys.sorted() == ["IMG_0001-2.JPG", "IMG_0001.JPG"])
      }
      #expect(arrived(server, "IMG_0001-2.JPG") == bytes(scratch.path("two/IMG_0001.JPG")))
      #expect(arrived(server, "IMG_0001.JPG") == bytes(scratch.path("one/IMG_0001.JPG")))
      // The same bytes under the counted name are not sent once more.
      #expect(try await push("--on-conflict", "rename", scratch.path("copy/"), url).end == .exited(0))
      #expect(server.folder.files().count == 2)
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(!status.output.contains("failed"), "\(status.output)")
    }

    @Test(arguments: ["put+", "tus+"]) func skippedFilesAreNotSentAndNotASuccess(_ uploadProtocol: String) async throws
    {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      try scratch.photo("two/IMG_0002.JPG", seed: 3)
      let server = try await ServeProcess.start(in: scratch)
      let words = ["--on-conflict", "skip", scratch.path("two/"), uploadProtocol + server.url]
      #expect(try await push(scratch.path("one/"), uploadProtocol + server.url).end == .exited(0))
      for sources in [[], [scratch.path("one/")]] {
        let command = try Command(Tool.fullbore, ["push"] + words[..<2] + sources + words[2...], in: scratch)
        #expect(try await command.wait() == .exited(1), "\(command.output)\(command.errors)")
        #expect(command.output.contains("1 skipped"), "\(command.output)")
        #expect(server.folder.files().keys.sorted() == ["IMG_0001.JPG", "IMG_0002.JPG"])
        #expect(arrived(server, "IMG_0001.JPG") == bytes(scratch.path("one/IMG_0001.JPG")))
        let (_, status) = try await fullbore("status", in: scratch)
        #expect(!status.output.contains("failed"), "\(status.output)")
      }
    }

    @Test func overwriteReplacesWhatIsThereAndNoFileOfTheSamePush() async throws {
      for card in ["one", "two"] { try scratch.photo("\(card)/IMG_0001.JPG", seed: card == "one" ? 1 : 2) }
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
      let (end, command) = try await push("--on-conflict", "overwrite", scratch.path("two/"), server.url)
      #expect(end == .exited(0), "\(command.errors)")
      #expect(arrived(server, "IMG_0001.JPG") == bytes(scratch.path("two/IMG_0001.JPG")))
      let (both, _) = try await push(
        "--on-conflict", "overwrite", scratch.path("one/"), scratch.path("two/"), server.url)
      #expect(both == .exited(1))
    }

    @Test func theLayoutSaysWhereTheNumberStands() async throws {
      for (index, card) in ["one", "two"].enumerated() {
        try scratch.photo("\(card)/IMG_0001.JPG", seed: UInt64(index))
      }
      let server = try await ServeProcess.start(in: scratch)
      let words = [
        "--layout", "{camera}/{stem}_{counter}.{ext}", scratch.path("one/"), scratch.path("two/"), server.url,
      ]
      let list = try Command(Tool.fullbore, ["push", "-n"] + words, in: scratch)
      #expect(try await list.wait() == .exited(0), "\(list.errors)")
      for number in 1...2 {
        #expect(list.output.contains("unknown/IMG_0001_\(number).JPG  "), "\(list.output)")
      }
      for _ in 0..<2 {
        let command = try Command(Tool.fullbore, ["push"] + words, in: scratch)
        #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
        #expect(
          server.folder.files().keys.sorted() == ["unknown/IMG_0001_1.JPG", "unknown/IMG_0001_2.JPG"])
      }
    }

    /// nginx replaces any existing file, so it is asked first.
    @Test(.needs(.nginx), arguments: ["put+", ""], ["rename", "skip"])
    func aServerThatWouldReplaceAFileLosesNone(_ uploadProtocol: String, _ choice: String) async throws {
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(into: folder.path, in: scratch)
      try scratch.photo("one/IMG.JPG", seed: 1)
      try scratch.photo("two/IMG.JPG", seed: 2)
      let url = "\(uploadProtocol)\(server.url)/"
      #expect(try await push(scratch.path("one/"), url).end == .exited(0))
      for _ in 0..<2 {
        let (end, command) = try await push("--on-conflict", choice, scratch.path("two/"), url)
        #expect(end == .exited(choice == "skip" ? 1 : 0), "\(command.output)\(command.errors)")
        #expect(folder.files().keys.sorted() == (choice == "skip" ? ["IMG.JPG"] : ["IMG-2.JPG", "IMG.JPG"]))
      }
      #expect(bytes("\(folder.path)/IMG.JPG") == bytes(scratch.path("one/IMG.JPG")))
    }

    /// A number that the rename would give may be another file's own name.
    @Test func aNumberedNameIsNoOtherFilesName() async throws {
      try scratch.photo("one/IMG.JPG", seed: 1)
      try scratch.photo("two/IMG-2.JPG", seed: 2)
      try scratch.photo("two/IMG.JPG", seed: 3)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
      let (end, command) = try await push("--on-conflict", "rename", scratch.path("two/"), server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      let contents = Set(server.folder.files().keys.compactMap { arrived(server, $0) })
      #expect(contents.count == 3 && server.folder.files().count == 3, "\(server.folder.files())")
    }

    @Test func optionsThatExcludeEachOtherAreRefused() async throws {
      try scratch.photo("one/IMG.JPG", seed: 1)
      for words in [
        ["--overwrite", "--on-conflict", "rename"], ["--on-conflict", "other"],
        ["--layout", "{stem}-{counter}.{ext}", "--on-conflict", "skip"],
        ["--layout", "{stem}-{counter}", "--overwrite"],
      ] {
        let command = try Command(
          Tool.fullbore, ["push"] + words + [scratch.path("one/"), "http://127.0.0.1:9/"], in: scratch)
        #expect(try await command.wait() == .exited(2), "\(words) \(command.errors)")
      }
    }

    /// A push that is killed after a file got another name goes on under that name.
    @Test func resumeGoesOnUnderTheNewName() async throws {
      try scratch.photo("one/film.mov", seed: 1)
      try scratch.file("two/film.mov", 16 << 20, seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
      let first = try Command(
        Tool.fullbore,
        ["push", "--on-conflict", "rename", "--bwlimit", "4M", scratch.path("two/"), "tus+\(server.url)"], in: scratch)
      try await until("bytes of the film are there") { server.folder.received() > 2 << 20 ? true : nil }
      try await untilEveryFileIsKnown(in: scratch)
      first.kill(SIGKILL)
      try await first.wait()
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(server.folder.files().keys.sorted() == ["film-2.mov", "film.mov"])
      #expect(arrived(server, "film-2.mov") == bytes(scratch.path("two/film.mov")))
    }

    @Test func resumeGivesOtherNamesAsThePushDid() async throws {
      try scratch.photo("one/film.mov", seed: 1)
      try scratch.file("two/film.mov", 16 << 20, seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        Tool.fullbore,
        ["push", "--on-conflict", "rename", "--bwlimit", "4M", scratch.path("two/"), "tus+\(server.url)"],
        in: scratch)
      try await until("bytes of the film are there") { server.folder.received() > 2 << 20 ? true : nil }
      try await untilEveryFileIsKnown(in: scratch)
      push.kill(SIGKILL)
      try await push.wait()
      let other = scratch.path("other.sqlite")
      #expect(try await self.push("--journal", other, scratch.path("one/"), "put+\(server.url)").end == .exited(0))
      for round in 0..<2 {
        let (end, resume) = try await fullbore("resume", in: scratch)
        #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
        #expect(resume.output.contains("1 under a new name") == (round == 0), "\(resume.output)\(resume.errors)")
      }
      #expect(server.folder.files().keys.sorted() == ["film-2.mov", "film.mov"])
      #expect(arrived(server, "film-2.mov") == bytes(scratch.path("two/film.mov")))
    }

    @Test func watchCountsOnToo() async throws {
      try scratch.photo("one/IMG.JPG", seed: 1)
      try scratch.photo("two/IMG.JPG", seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
      let watch = try Command(
        Tool.fullbore, ["watch", "--on-conflict", "rename", scratch.path("two/"), server.url], in: scratch)
      try await until("the second photo arrives") { server.folder.files()["IMG-2.JPG"] }
      watch.kill(SIGINT)
      #expect(try await watch.wait() == .exited(130))
    }
  }
}
