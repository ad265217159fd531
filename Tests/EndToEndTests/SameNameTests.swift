import Foundation
import Testing

extension EndToEnd {
  /// Two files with the same name: both are stored, or a message says which one is not sent.
  @Suite(.serialized) struct SameNameTests {
    let scratch = try! Scratch()

    @Test(arguments: ["tus+", "put+"], [false, true])
    func twoCamerasPhotosNeverTakeOneName(_ uploadProtocol: String, _ overwrites: Bool) async throws {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        Tool.fullbore,
        ["push", "--layout", "{year}/{month}/{name}"] + (overwrites ? ["--overwrite"] : [])
          + [scratch.path("one"), scratch.path("two"), uploadProtocol + server.url], in: scratch)
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(server.folder.files().count == 1)
      let name = try #require(server.folder.files().keys.first)
      let arrived = FileManager.default.contents(atPath: "\(server.folder.path)/\(name)")
      #expect(arrived == FileManager.default.contents(atPath: scratch.path("one/IMG_0001.JPG")))
      for name in ["one", "two"] {
        #expect(push.errors.contains("\(scratch.path(name))/IMG_0001.JPG"), "\(push.errors)")
      }
      #expect(push.errors.contains("{folder}") && !push.errors.contains("--overwrite"), "\(push.errors)")
    }

    /// The journal keeps the refused file, and a resume, which does not know the other file, does not overwrite that
    /// one.
    @Test(arguments: [false, true]) func aFileRefusedForItsNameStaysInTheJournalWithTheReason(_ overwrites: Bool)
      async throws
    {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let words =
        ["push"] + (overwrites ? ["--overwrite"] : []) + [scratch.path("one/"), scratch.path("two/"), server.url]
      let reason = "\(scratch.path("one"))/IMG_0001.JPG, which is another file, has that name in this push"
      for _ in 0..<2 {
        let push = try Command(Tool.fullbore, words, in: scratch)
        #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
        let (_, status) = try await fullbore("status", in: scratch)
        #expect(status.output.contains("done: 1 file") && status.output.contains("failed: 1 file"), "\(status.output)")
        #expect(status.output.contains(reason), "\(status.output)")
        #expect(!status.output.contains("ended before all its files were known"), "\(status.output)")
        let (end, resume) = try await fullbore("resume", in: scratch)
        #expect(end == .exited(1) && resume.errors.contains(reason), "\(resume.output)\(resume.errors)")
        #expect(Folder(scratch.path("one")).hasSameBytes("IMG_0001.JPG", as: server.folder))
      }
      let (apart, push) = try await fullbore("push", scratch.path("one"), scratch.path("two"), server.url, in: scratch)
      #expect(apart == .exited(0) && server.folder.files().count == 3, "\(push.errors)")
      let (_, status) = try await fullbore("status", "--json", in: scratch)
      let refused = try #require(status.output.split(separator: "\n").first { $0.contains(reason) })
      let id = try #require(refused.split(separator: "\"id\":").last?.prefix { $0.isNumber })
      #expect(try await fullbore("abort", String(id), in: scratch).end == .exited(0))
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
    }

    /// Files that would be refused are named before anything is sent.
    @Test func aDryRunNamesWhatWouldBeRefused() async throws {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      for card in ["one", "two"] { try scratch.photo("\(card)/IMG_0002.JPG", seed: 7) }
      let words = ["--layout", "{year}/{name}", scratch.path("one"), scratch.path("two"), "http://127.0.0.1:9/"]
      for command in ["push", "watch"] {
        let push = try Command(Tool.fullbore, [command, "--dry-run"] + words, in: scratch)
        #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
        #expect(
          push.errors.contains("\(scratch.path("two"))/IMG_0001.JPG is not sent: \(scratch.path("one"))/IMG_0001.JPG"),
          "\(push.errors)")
        #expect(!push.errors.contains("IMG_0002"), "\(push.errors)")
        #expect(push.output.components(separatedBy: "IMG_0001.JPG").count == 2, "\(push.output)")
      }
    }

    @Test func theSamePhotoOnTwoCardsIsNoConflict() async throws {
      for card in ["one", "two"] { try scratch.photo("\(card)/IMG_0001.JPG", seed: 7) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--overwrite", scratch.path("one/"), scratch.path("two/"), scratch.path("one/IMG_0001.JPG"),
        server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files().count == 1)
    }

    /// Equal files of one name, one of which another push has sent: nothing of them is sent again, until one of them changes.
    @Test(arguments: ["", "resumable+", "put+"])
    func twinsThatMayReplaceEachOtherAreSentOnce(_ uploadProtocol: String) async throws {
      for card in ["one", "two", "three"] { try scratch.photo("\(card)/IMG_0001.JPG", seed: 7) }
      let server = try await ServeProcess.start(in: scratch)
      func push(_ cards: String...) async throws -> Command {
        let sources = cards.map { scratch.path("\($0)/") }
        let push = try Command(
          Tool.fullbore, ["push", "--overwrite"] + sources + [uploadProtocol + server.url], in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        return push
      }
      _ = try await push("one")
      #expect(try await push("one", "two", "three").output.contains("1 done before"))
      for cards in [["one", "two", "three"], ["three", "two", "one"]] {
        let again = try await push(cards[0], cards[1], cards[2])
        #expect(again.output.contains("0 files sent") && again.output.contains("3 done before"), "\(again.output)")
      }
      try scratch.photo("two/IMG_0001.JPG", seed: 8)
      #expect(try await push("two").output.contains("1 file sent"))
      #expect(Folder(scratch.path("two")).hasSameBytes("IMG_0001.JPG", as: server.folder))
      let again = try await push("three")
      #expect(again.output.contains("1 file sent"), "\(again.output)")
      #expect(Folder(scratch.path("three")).hasSameBytes("IMG_0001.JPG", as: server.folder))
    }

    /// A file that a later push has replaced is sent again, whatever the journal says of the earlier push.
    @Test(arguments: ["", "put+"]) func aFileThatWasReplacedIsSentAgain(_ uploadProtocol: String) async throws {
      try scratch.photo("one/IMG_0001.JPG", seed: 1)
      try scratch.photo("two/IMG_0001.JPG", seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      for card in ["one", "two", "one", "one"] {
        let (end, push) = try await fullbore(
          "push", "--overwrite", scratch.path("\(card)/"), uploadProtocol + server.url, in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        #expect(Folder(scratch.path(card)).hasSameBytes("IMG_0001.JPG", as: server.folder), "\(push.output)")
      }
      let (_, again) = try await fullbore(
        "push", "--overwrite", scratch.path("one/"), uploadProtocol + server.url, in: scratch)
      #expect(again.output.contains("1 done before"), "\(again.output)")
    }

    /// nginx replaces any existing file.
    @Test(.needs(.nginx), arguments: ["put+", ""])
    func aServerThatWouldReplaceAFileIsAskedFirst(_ uploadProtocol: String) async throws {
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(into: folder.path, in: scratch)
      try scratch.file("one/IMG_0001.JPG", 20_000, seed: 1)
      try scratch.file("two/IMG_0001.JPG", 20_000, seed: 2)
      try scratch.file("three/IMG_0001.JPG", 20_001, seed: 3)
      try scratch.file("copy/IMG_0001.JPG", 20_000, seed: 1)
      #expect(
        try await fullbore("push", scratch.path("one/"), "\(uploadProtocol)\(server.url)/", in: scratch).end
          == .exited(0))
      for other in ["two/", "three/"] {
        let (end, push) = try await fullbore(
          "push", scratch.path(other), "\(uploadProtocol)\(server.url)/", in: scratch)
        #expect(end == .exited(1), "\(push.output)\(push.errors)")
        #expect(push.errors.contains("another file"), "\(push.errors)")
        #expect(Folder(scratch.path("one")).hasSameBytes("IMG_0001.JPG", as: folder))
      }
      let (same, copy) = try await fullbore(
        "push", scratch.path("copy/"), "\(uploadProtocol)\(server.url)/", in: scratch)
      #expect(same == .exited(0) && copy.output.contains("0 files sent"), "\(copy.output)\(copy.errors)")
      #expect(copy.output.contains("1 already there"), "\(copy.output)")
      let (end, push) = try await fullbore(
        "push", "--overwrite", scratch.path("two/"), "\(uploadProtocol)\(server.url)/", in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      #expect(Folder(scratch.path("two")).hasSameBytes("IMG_0001.JPG", as: folder))
    }
  }
}
