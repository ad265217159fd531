import Foundation
import Synchronization
import TestSupport
import Testing

extension EndToEnd {
  /// The files of one photo belong together: a Live Photo, RAW and JPEG with their sidecar, an original and its edit.
  @Suite(.serialized) struct ShotTests {
    let scratch = try! Scratch()

    private static let live = ["IMG_0001.AAE", "IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC"]
    private static let raw = ["IMG_0002.CR2", "IMG_0002.JPG", "IMG_0002.xmp"]

    /// Some files are larger than what is sent with the request that creates an upload.
    private func makeCard(film: Int = 6 << 20) throws {
      for (index, name) in (Self.live + Self.raw).enumerated() {
        let size = name.hasSuffix("MOV") ? film : name.hasSuffix("CR2") ? 5 << 20 : 3000
        try scratch.file("card/\(name)", size, seed: UInt64(index + 1))
      }
    }

    private func push(_ words: String...) async throws -> (end: Command.End, command: Command) {
      try await push(words)
    }

    private func push(_ words: [String]) async throws -> (end: Command.End, command: Command) {
      let command = try Command(Tool.fullbore, ["push"] + words, in: scratch)
      return (try await command.wait(), command)
    }

    private func expectSame(_ server: ServeProcess) {
      Folder(scratch.path("card")).expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0)
    }

    @Test(arguments: ["", "put+", "tus+", "resumable+", "dav+"], ["1", "16"])
    func shotsArrive(_ uploadProtocol: String, _ jobs: String) async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let words = ["-j", jobs, "--verify", scratch.path("card/"), uploadProtocol + server.url]
      let (end, command) = try await push(words)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(command.output.contains("7 files"), "\(command.output)")
      expectSame(server)
      let (again, second) = try await push(words)
      #expect(again == .exited(0), "\(second.output)\(second.errors)")
    }

    /// Another camera's photo has the name of one file: nothing of that shot appears, and the other shot does.
    @Test(arguments: ["", "put+", "tus+", "resumable+"], ["IMG_0001.HEIC", "IMG_0001.MOV"])
    func aShotOfWhichOneNameIsTakenStaysAway(_ uploadProtocol: String, _ taken: String) async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("received/\(taken)", 100, seed: 99)
      let (end, command) = try await push(scratch.path("card/"), uploadProtocol + server.url)
      #expect(end == .exited(1), "\(command.output)\(command.errors)")
      #expect(server.folder.files().keys.sorted() == ([taken] + Self.raw).sorted())
      for name in Self.live { #expect(command.errors.contains(name), "\(command.errors)") }
      let (_, status) = try await fullbore("status", in: scratch)
      for name in Self.live { #expect(status.output.contains(name), "\(status.output)") }
      try FileManager.default.removeItem(atPath: "\(server.folder.path)/\(taken)")
      let (again, second) = try await push(scratch.path("card/"), uploadProtocol + server.url)
      #expect(again == .exited(0), "\(second.output)\(second.errors)")
      expectSame(server)
    }

    /// A file of the shot was sent before: what is left goes without waiting for it.
    @Test(arguments: ["put+", "tus+", "resumable+"])
    func whatIsNewOfAShotFollows(_ uploadProtocol: String) async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let url = uploadProtocol + server.url
      #expect(try await push(scratch.path("card/IMG_0001.HEIC"), url).end == .exited(0))
      #expect(server.folder.files().keys.sorted() == ["IMG_0001.HEIC"])
      #expect(try await push(scratch.path("card/"), url).end == .exited(0))
      expectSame(server)
    }

    /// The journal is lost, and a part of the shot is there.
    @Test(arguments: ["put+", "tus+", "resumable+"])
    func whatIsThereAlreadyCounts(_ uploadProtocol: String) async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      let url = uploadProtocol + server.url
      #expect(try await push(scratch.path("card/IMG_0001.HEIC"), url).end == .exited(0))
      let words = ["--journal", scratch.path("other"), scratch.path("card/"), url]
      let (end, command) = try await push(words)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      expectSame(server)
    }

    /// The client is killed while the film is on its way and the other files wait at the server, which shows none of them.
    private func killPush(_ words: [String], _ server: ServeProcess) async throws {
      let killed = try Command(Tool.fullbore, ["push", "--bwlimit", "4M"] + words, in: scratch)
      _ = try await until("a part of the film is there") { server.folder.received() > 14 << 20 ? true : nil }
      killed.kill(SIGKILL)
      try await killed.wait()
      let hidden = Self.live + Self.live.map { $0 + ".age" }
      #expect(Set(server.folder.files().keys).isDisjoint(with: hidden), "\(server.folder.files())")
    }

    /// A push that was killed goes on in the next run.
    @Test(arguments: ["put+", "tus+", "resumable+"], ["push", "resume"])
    func aKilledPushGoesOn(_ uploadProtocol: String, _ next: String) async throws {
      try makeCard(film: 24 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let url = uploadProtocol + server.url
      try await killPush([scratch.path("card/"), url], server)
      let words = next == "push" ? [next, scratch.path("card/"), url] : [next]
      let command = try Command(Tool.fullbore, words, in: scratch)
      #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
      expectSame(server)
      let (_, status) = try await fullbore("status", in: scratch)
      #expect(!status.output.contains("unfinished") && !status.output.contains("failed"), "\(status.output)")
    }

    /// Sealed files wait as others do. Where the next run finds no upload of theirs, it seals and sends them again.
    @Test(.enabled(if: Peer.age.isThereOrWanted), arguments: ["put+", "tus+", "resumable+"])
    func aKilledPushOfSealedFilesGoesOn(_ uploadProtocol: String) async throws {
      try makeCard(film: 24 << 20)
      let key = try await scratch.makeAgeKey("key")
      let server = try await ServeProcess.start(in: scratch)
      let words = ["--seal", key.recipient, scratch.path("card/"), uploadProtocol + server.url]
      try await killPush(words, server)
      let command = try Command(Tool.fullbore, ["push"] + words, in: scratch)
      #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
      #expect(server.folder.unfinished() == 0)
      let opened = try scratch.folder("opened")
      let (end, unseal) = try await fullbore("unseal", server.url, opened, "-i", key.file, in: scratch)
      #expect(end == .exited(0), "\(unseal.output)\(unseal.errors)")
      Folder(scratch.path("card")).expectSame(as: Folder(opened))
    }

    /// The other files of a photo that waits at the server are deleted here: it waits for nothing any more.
    @Test(arguments: ["put+", "tus+", "resumable+"])
    func aPhotoWhoseOtherFilesAreDeletedGoesAlone(_ uploadProtocol: String) async throws {
      try makeCard(film: 24 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let url = uploadProtocol + server.url
      try await killPush([scratch.path("card/"), url], server)
      for name in Self.live where name != "IMG_0001.HEIC" {
        try FileManager.default.removeItem(atPath: scratch.path("card/\(name)"))
      }
      let (end, command) = try await push(scratch.path("card/"), url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(server.folder.files().keys.sorted() == ["IMG_0001.HEIC"] + Self.raw)
    }

    /// What waits at the server survives its kill, and so does the push.
    @Test func aKilledServerGoesOn() async throws {
      try makeCard(film: 24 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let command = try Command(
        Tool.fullbore, ["push", "--bwlimit", "6M", scratch.path("card/"), server.url], in: scratch)
      _ = try await until("a part of the film is there") { server.folder.received() > 14 << 20 ? true : nil }
      server.command.kill(SIGKILL)
      try await server.command.wait()
      #expect(Set(server.folder.files().keys).isDisjoint(with: Self.live), "\(server.folder.files())")
      let next = try await server.startAgain(in: scratch)
      #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
      expectSame(next)
    }

    /// The server is killed while it gives the files of a photo their names: once it listens again, all are there or none.
    @Test(arguments: 0..<5) func aServerThatIsKilledWhileItPublishes(_ round: Int) async throws {
      let endings = [
        "HEIC", "JPG", "avif", "heif", "hif", "jpeg", "png", "tif", "tiff", "webp", "ARW", "CR2", "DNG", "NEF", "MOV",
        "xmp",
      ]
      for (index, ending) in endings.enumerated() {
        try scratch.file("card/IMG_1.\(ending)", 3000, seed: UInt64(index))
      }
      let server = try await ServeProcess.start(in: scratch)
      let first = "\(server.folder.path)/IMG_1.HEIC"
      let killer = Background { [command = server.command] in
        let deadline = ContinuousClock.now + .seconds(20)
        while access(first, F_OK) != 0 {
          if ContinuousClock.now > deadline { return false }
        }
        command.kill(SIGKILL)
        return true
      }
      let push = try Command(Tool.fullbore, ["push", scratch.path("card/"), server.url], in: scratch)
      #expect(killer.value() == true)
      try await server.command.wait()
      let next = try await server.startAgain(in: scratch)
      #expect(next.folder.files().count == endings.count, "\(next.folder.files().keys)")
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      expectSame(next)
    }

    /// Reads a folder all the time, and returns the files that were there without the photo that they belong to.
    private func orphans(in folder: String, while work: () async throws -> Void) async throws -> [String] {
      let isDone = Atomic(false)
      let found = Mutex<Set<String>>([])
      let rounds = Atomic(0)
      let reader = Background {
        func names() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] }
        while !isDone.load(ordering: .relaxed) {
          // Photos are listed last: one may appear while the folder is read.
          let others = names().filter { $0.hasSuffix(".MOV") || $0.hasSuffix(".AAE") }
          let photos = Set(names())
          for name in others where !photos.contains(name.dropLast(3) + "HEIC") {
            _ = found.withLock { $0.insert(name) }
          }
          rounds.add(1, ordering: .relaxed)
        }
      }
      try await work()
      isDone.store(true, ordering: .relaxed)
      #expect(reader.value() != nil)
      #expect(rounds.load(ordering: .relaxed) > 10)
      return found.withLock { $0.sorted() }
    }

    private func makeShots(_ count: Int) throws {
      for shot in 0..<count {
        let name = "card/IMG_\(2000 + shot)"
        try scratch.file("\(name).HEIC", 30_000, seed: UInt64(shot))
        try scratch.file("\(name).MOV", shot % 10 == 0 ? 5 << 20 : 500, seed: UInt64(shot + 10_000))
        try scratch.file("\(name).AAE", 50, seed: UInt64(shot + 20_000))
      }
    }

    @Test(arguments: ["", "put+", "resumable+"])
    func aReaderNeverMeetsAFilmWithoutItsPhoto(_ uploadProtocol: String) async throws {
      try makeShots(100)
      let server = try await ServeProcess.start(in: scratch)
      let orphans = try await orphans(in: server.folder.path) {
        let (end, command) = try await push("--bwlimit", "50M", scratch.path("card/"), uploadProtocol + server.url)
        #expect(end == .exited(0), "\(command.output)\(command.errors)")
      }
      #expect(orphans == [])
      expectSame(server)
    }

    /// Where the server does not know groups, a photo is sent before its other files.
    @Test(.needs(.nginx), arguments: ["put+", "dav+"], ["1", "16"])
    func elsewhereThePhotoGoesFirst(_ uploadProtocol: String, _ jobs: String) async throws {
      try makeShots(100)
      let folder = try scratch.folder("elsewhere")
      let peer = try await PeerServer.nginx(into: folder, methods: "PUT DELETE MKCOL COPY MOVE", in: scratch)
      let orphans = try await orphans(in: folder) {
        let (end, command) = try await push("-j", jobs, scratch.path("card/"), "\(uploadProtocol)\(peer.url)/")
        #expect(end == .exited(0), "\(command.output)\(command.errors)")
      }
      #expect(orphans == [])
      #expect(Folder(folder).files().filter { !$0.key.hasPrefix(".") }.count == 300)
    }

    /// Elsewhere, what belongs to a photo that is refused is not sent either.
    @Test(.needs(.nginx)) func elsewhereNothingGoesWithoutItsPhoto() async throws {
      try makeCard()
      let folder = try scratch.folder("elsewhere")
      let peer = try await PeerServer.nginx(into: folder, in: scratch)
      _ = try scratch.folder("elsewhere/IMG_0001.HEIC")
      let (end, command) = try await push(scratch.path("card/"), "put+\(peer.url)/")
      #expect(end == .exited(1), "\(command.output)\(command.errors)")
      let files = Set(Folder(folder).files().keys)
      #expect(files.isDisjoint(with: Self.live), "\(files)")
      #expect(files.isSuperset(of: Self.raw), "\(files)")
      for name in Self.live { #expect(command.errors.contains(name), "\(command.errors)") }
    }

    /// One line says what is wrong with a photo, and the events of its files have one group.
    @Test func checkTreatsAPhotoAsOne() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await push(scratch.path("card/"), server.url).end == .exited(0))
      for name in ["IMG_0001.MOV", "IMG_0001.AAE"] {
        try FileManager.default.removeItem(atPath: "\(server.folder.path)/\(name)")
      }
      let (end, check) = try await fullbore("check", scratch.path("card/"), server.url, in: scratch)
      #expect(end == .exited(1), "\(check.output)\(check.errors)")
      let lines = check.errors.split(separator: "\n").filter { $0.contains("IMG_0001") }
      #expect(lines.count == 1, "\(check.errors)")
      #expect(lines.first?.contains("IMG_0001.MOV") == true && lines.first?.contains("IMG_0001.AAE") == true)
      let (_, events) = try await fullbore("check", "--json", scratch.path("card/"), server.url, in: scratch)
      let groups = events.output.split(separator: "\n").compactMap { line -> String? in
        let event = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return event?["event"] as? String == "checked" ? event?["group"] as? String : nil
      }
      #expect(groups.count == 7 && Set(groups).count == 2, "\(events.output)")
    }
  }
}
