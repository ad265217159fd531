import Foundation
import Testing

extension EndToEnd {
  /// Files that change during a push: each is named and not published, the other files arrive, and a changed file
  /// arrives once it no longer changes.
  @Suite(.serialized) struct MovingSourceTests {
    let scratch = try! Scratch()
    private static let size = 12 << 20

    enum Motion: String, CaseIterable, Sendable {
      case deleted, shrunk, grown, replaced, rewritten, touched

      /// The text of the message.
      var words: String {
        switch self {
        case .deleted: "was deleted while it was sent; nothing of it is at the destination"
        case .replaced: "was replaced or deleted while it was read"
        case .shrunk: "ended at byte"
        case .grown: "bytes while it was read"
        case .rewritten, .touched: "was written to while it was read"
        }
      }

      func happen(to file: String) throws {
        switch self {
        case .deleted: try FileManager.default.removeItem(atPath: file)
        case .shrunk: #expect(truncate(file, 6 << 20) == 0)
        case .grown: try change(file) { try $0.seekToEnd() }
        case .rewritten: try change(file) { try $0.seek(toOffset: 11 << 20) }
        case .touched:
          try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_600_000_000)], ofItemAtPath: file)
        case .replaced:
          try Data(repeating: 7, count: MovingSourceTests.size).write(to: URL(fileURLWithPath: file + ".new"))
          #expect(rename(file + ".new", file) == 0)
        }
      }

      private func change(_ file: String, _ seek: (FileHandle) throws -> Void) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        try seek(handle)
        try handle.write(contentsOf: Data("another version".utf8))
        try handle.close()
      }
    }

    @Test(arguments: Motion.allCases, ["put+", "tus+"])
    func aFileThatChangesWhileItIsReadIsNamedAndNotPublished(_ motion: Motion, _ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/video.mov", Self.size)
      for number in 0..<5 { try scratch.file("gallery/IMG_\(number).jpg", 30_000 + number) }
      let gallery = Folder(scratch.path("gallery"))
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--bwlimit", "8M", gallery.path + "/", uploadProtocol + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 2 << 20 ? true : nil }
      try motion.happen(to: file)
      #expect(try await push.wait() == .exited(1))
      #expect(push.errors.contains("video.mov: "), "\(push.errors)")
      #expect(push.errors.contains(motion.words), "\(push.errors)")
      #expect(push.errors.split(separator: "\n").count == 1, "\(push.errors)")
      #expect(server.folder.files().count == 5 && server.folder.files()["video.mov"] == nil)
      if motion == .deleted { try await expectGone(in: scratch) }

      let (end, again) = try await fullbore("push", gallery.path + "/", uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(again.errors)")
      gallery.expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0 || motion == .deleted)
    }

    /// A watch names a file that is deleted while it is sent once, gives its upload up, and goes on.
    @Test(arguments: ["put+", "tus+", "dav+"])
    func aWatchNamesWhatIsDeletedOnTheWay(_ uploadProtocol: String) async throws {
      let file = try scratch.file("gallery/video.mov", Self.size)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: uploadProtocol + server.url, in: scratch, "--bwlimit", "8M")
      try await watch.until("a part has arrived") { server.folder.unfinished() > 2 << 20 ? true : nil }
      try FileManager.default.removeItem(atPath: file)
      let words = "was deleted while it was sent; nothing of it is at the destination"
      try await watch.until("it is named") { watch.command.errors.contains(words) ? true : nil }
      try scratch.file("gallery/IMG_1.jpg", 30_000)
      try await watch.until("the next one is there") { server.folder.files()["IMG_1.jpg"] != nil ? true : nil }
      try await watch.until("its upload is given up") { watch.command.errors.contains("is given up") ? true : nil }
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.errors.components(separatedBy: words).count == 2, "\(watch.command.errors)")
      #expect(server.folder.files().count == 1)
      #expect(try await fullbore("resume", in: scratch).end == .exited(0))
    }

    /// The files change while they wait behind a slow one. They are small enough to be sent in order.
    @Test(arguments: ["put+", "tus+"]) func filesThatChangeWhileTheyWaitAreNamed(_ uploadProtocol: String) async throws
    {
      try scratch.file("gallery/a.mov", 4 << 20)
      for name in ["b-gone", "c-changed", "d-longer", "e-folder", "f-pipe", "g-same"] {
        try scratch.file("gallery/\(name).jpg", 50_000)
      }
      let gallery = Folder(scratch.path("gallery"))
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--jobs", "1", "--bwlimit", "2M", gallery.path + "/", uploadProtocol + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      func path(_ name: String) -> String { "\(gallery.path)/\(name).jpg" }
      for name in ["b-gone", "e-folder", "f-pipe"] { try FileManager.default.removeItem(atPath: path(name)) }
      try Data(repeating: 1, count: 50_000).write(to: URL(fileURLWithPath: path("c-changed")))
      try Data(repeating: 1, count: 50_001).write(to: URL(fileURLWithPath: path("d-longer")))
      try FileManager.default.createDirectory(atPath: path("e-folder"), withIntermediateDirectories: false)
      #expect(mkfifo(path("f-pipe"), 0o644) == 0)
      #expect(try await push.wait() == .exited(1))
      #expect(
        push.errors.contains("b-gone.jpg: ") && push.errors.contains("No such file or directory"), "\(push.errors)")
      for name in ["c-changed", "d-longer"] {
        #expect(push.errors.contains("\(name).jpg: "), "\(push.errors)")
        #expect(push.errors.contains("the content changed since it was first looked at"), "\(push.errors)")
      }
      for name in ["e-folder", "f-pipe"] {
        #expect(push.errors.contains("\(name).jpg: not a regular file"), "\(push.errors)")
      }
      #expect(server.folder.files().keys.sorted() == ["a.mov", "g-same.jpg"])
    }

    /// A camera roll is sorted while it is pushed: each file arrives once, under the name that the walk found, and no
    /// byte is read twice. Some files are renamed before they are opened, some while they are read.
    @Test(arguments: ["put+", "tus+"]) func filesRenamedDuringAPushArriveOnce(_ uploadProtocol: String) async throws {
      let size = 200_000
      for number in 100..<198 { try scratch.file("gallery/IMG_\(number).jpg", size + number, seed: UInt64(number)) }
      for name in ["IMG_000.mov", "IMG_199.mov"] { try scratch.file("gallery/\(name)", 6 << 20) }
      try scratch.file("copy/IMG_000.mov", 0)
      let copy = Folder(scratch.path("copy"))
      let gallery = Folder(scratch.path("gallery"))
      for name in gallery.files().keys {
        try? FileManager.default.removeItem(atPath: "\(copy.path)/\(name)")
        try FileManager.default.copyItem(atPath: "\(gallery.path)/\(name)", toPath: "\(copy.path)/\(name)")
      }
      let total = copy.received()
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--json", "--jobs", "2", "--part-size", "1M", "--bwlimit", "10M", gallery.path + "/",
        uploadProtocol + server.url, in: scratch)
      try await until("a film is under way: \(push.errors)") { server.folder.received() > 1 << 20 ? true : nil }
      try FileManager.default.createDirectory(atPath: gallery.path + "/sorted", withIntermediateDirectories: false)
      #expect(rename(gallery.path + "/IMG_000.mov", gallery.path + "/sorted/first.mov") == 0)
      for number in stride(from: 101, to: 198, by: 2) {
        let name = number % 4 == 1 ? "sorted/\(number).jpg" : "A\(number).jpg"
        #expect(rename("\(gallery.path)/IMG_\(number).jpg", "\(gallery.path)/\(name)") == 0)
        try scratch.file("gallery/new/IMG_\(number).jpg", 1000)
      }
      // Another photo gets the old name of a renamed one.
      try scratch.file("gallery/IMG_197.jpg", size + 197, seed: 9)
      for number in stride(from: 100, to: 198, by: 10) { chmod("\(gallery.path)/IMG_\(number).jpg", 0o600) }
      var read = 0
      try await until("it ends", .seconds(120)) {
        let told = try? String(contentsOfFile: "/proc/\(push.pid)/io", encoding: .utf8)
        let line = told?.split(separator: "\n").first { $0.hasPrefix("rchar: ") }
        read = max(read, line.flatMap { Int($0.dropFirst(7)) } ?? 0)
        return push.end
      }
      #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
      copy.expectSame(as: server.folder)
      #expect(push.output.components(separatedBy: #""event":"start""#).count == 101, "\(push.output)")
      #expect(push.output.components(separatedBy: #""event":"done""#).count == 101, "\(push.output)")
      // The process also reads its libraries and the journal.
      #expect(read > total / 2 && read < total + 1 << 20, "\(read) bytes were read of \(total)")
    }

    /// A recording that never ends is never published.
    @Test func aFileThatIsBeingWrittenIsNotPublished() async throws {
      try scratch.file("gallery/IMG_1.jpg", 30_000)
      let film = try scratch.file("gallery/film.mov", 1 << 20)
      let recorder = try Command(
        "bash", ["-c", "while :; do printf x >> \"$0\"; done", film], in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      let size = { try FileManager.default.attributesOfItem(atPath: film)[.size] as? Int ?? 0 }
      try await until("something is recorded") { try size() > 1 << 20 ? true : nil }
      // The rate is so low that the recorder writes meanwhile, even on a busy machine.
      let (end, push) = try await fullbore(
        "push", "--bwlimit", "1M", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(1))
      #expect(push.errors.contains("film.mov: "), "\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["IMG_1.jpg"])
      recorder.kill(SIGKILL)
      try await recorder.wait()
      #expect(try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch).end == .exited(0))
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.enabled(if: geteuid() != 0 || Tool.find("setpriv") != nil, "as root, and without setpriv"))
    func aFileThatMayNotBeReadIsNamed() async throws {
      for name in ["a", "locked", "z"] { try scratch.file("gallery/\(name).jpg", 10_000) }
      try scratch.file("gallery/private/IMG.jpg", 10_000)
      let server = try await ServeProcess.start(in: scratch)
      #expect(chmod(scratch.path("gallery/locked.jpg"), 0) == 0)
      #expect(chmod(scratch.path("gallery/private"), 0) == 0)
      defer { chmod(scratch.path("gallery/private"), 0o700) }
      chmod(scratch.path, 0o755)
      var words = [Tool.fullbore, "push", scratch.path("gallery/"), server.url]
      if geteuid() == 0 {
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + words
      }
      try scratch.folder("state")
      chmod(scratch.path("state"), 0o777)
      let push = try Command(
        words[0], Array(words.dropFirst()), in: scratch,
        environment: ["FULLBORE_JOURNAL": scratch.path("state/journal.sqlite")])
      #expect(try await push.wait() == .exited(1))
      let lines = push.errors.split(separator: "\n")
      #expect(lines.count == 2 && lines.allSatisfy { $0.contains("Permission denied") }, "\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["a.jpg", "z.jpg"])
    }
  }
}

/// Expects that the journal lists an upload like any other whose source is gone, and no failure.
private func expectGone(in scratch: Scratch) async throws {
  let (_, status) = try await fullbore("status", in: scratch)
  #expect(status.output.contains("interrupted: 1 file"), "\(status.output)")
  #expect(status.output.contains("the source is gone, ") && !status.output.contains("failed"), "\(status.output)")
}
