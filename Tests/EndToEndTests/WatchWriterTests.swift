import Blobs
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore watch` with files that other programs write: a partial file is not published. If it was, the rest
  /// follows.
  @Suite(.serialized) struct WatchWriterTests {
    let scratch = try! Scratch()

    private func gallery(_ name: String) -> String { scratch.path("gallery/\(name)") }

    /// The watch is a service with its own user, and another user writes the files, as with an FTP or SMB server.
    @Test(.enabled(if: geteuid() == 0 && Tool.find("setpriv") != nil, "it takes root and setpriv to be two users"))
    func watchWaitsUntilAnotherUserHasClosedTheFile() async throws {
      try scratch.folder("gallery")
      try scratch.folder("state")
      for folder in [scratch.path, gallery("")] { #expect(chmod(folder, 0o755) == 0) }
      #expect(chmod(scratch.path("state"), 0o777) == 0)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try WatchProcess.start(asUser: 65534, to: server.url, in: scratch)
      try await watch.until("it watches") { watch.command.errors.contains("watching ") ? true : nil }
      let go = scratch.path("go")
      let writer = try Command(
        "bash",
        [
          "-c",
          "exec 3>\"$0\"; head -c 100000 /dev/zero >&3; until [ -e \"$1\" ]; do sleep 0.05; done; "
            + "head -c 200000 /dev/zero >&3", gallery("film.mov"), go,
        ],
        in: scratch)
      try await until("half of it is written") {
        Folder(scratch.path("gallery")).files()["film.mov"] == 100_000 ? true : nil
      }
      // Each file waits for 250 ms after it was closed, and all together for longer than --settle.
      for number in 0..<5 {
        try scratch.file("gallery/IMG_\(number).jpg", 10_000)
        try await watch.until("IMG_\(number) arrives") { server.folder.files()["IMG_\(number).jpg"] }
      }
      #expect(server.folder.files()["film.mov"] == nil, "a half-written file was published")
      try Data().write(to: URL(fileURLWithPath: go))
      try await writer.wait()
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      #expect(watch.command.output.contains("6 files sent"), "\(watch.command.output)\(watch.command.errors)")
    }

    /// Browsers and copy programs write under a temporary name and rename the complete file.
    @Test func aFileInTheMakingIsSentUnderItsLastName() async throws {
      for name in ["before.mov.part", "film.mov.crdownload", "notes.txt~"] { try scratch.file("gallery/\(name)", 1000) }
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try scratch.file("gallery/later.tmp", 1000)
      // Each file waits for 250 ms after it was closed, and all together for longer than --settle.
      for number in 0..<3 {
        try scratch.file("gallery/IMG_\(number).jpg", 1000)
        try await watch.until("IMG_\(number) arrives") { server.folder.files()["IMG_\(number).jpg"] }
      }
      #expect(server.folder.files().count == 3, "\(server.folder.files())")
      for (name, last) in [
        ("before.mov.part", "before.mov"), ("film.mov.crdownload", "film.mov"), ("later.tmp", "later"),
      ] {
        #expect(rename(gallery(name), gallery(last)) == 0)
        try await watch.until("\(last) arrives") { server.folder.files()[last] }
      }
      #expect(try await watch.stop() == .exited(130))
      #expect(server.folder.files().count == 6 && server.folder.files()["notes.txt~"] == nil)
      #expect(watch.command.output.components(separatedBy: "later.tmp  left out: its name").count == 2)
      // A push sends the current state.
      let (end, _) = try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(0) && server.folder.files()["notes.txt~"] == 1000)
    }

    #if os(Linux)
      /// A file server holds a write lease for a client that may still have bytes of the file.
      @Test func aFileUnderALeaseIsSentOnceItsHolderHasClosedIt() async throws {
        try scratch.folder("gallery")
        let server = try await ServeProcess.start(in: scratch)
        let watch = try await WatchProcess.start(to: server.url, in: scratch)
        let film = try scratch.file("film.mov", 100_000)
        var lease = FileLease(BytePath(film))
        try #require(lease != nil)
        #expect(rename(film, gallery("film.mov")) == 0)
        try await watch.until("the lease is wanted") { lease?.isWanted == true ? true : nil }
        // Each file waits for 250 ms after it was closed, and all together for longer than --settle.
        for number in 0..<5 {
          try scratch.file("gallery/IMG_\(number).jpg", 10_000)
          try await watch.until("IMG_\(number) arrives") { server.folder.files()["IMG_\(number).jpg"] }
        }
        #expect(server.folder.files()["film.mov"] == nil)
        lease = nil
        try await watch.expectSame(at: server.folder)
        #expect(try await watch.stop() == .exited(130))
        #expect(!watch.command.output.contains("failed"), "\(watch.command.output)\(watch.command.errors)")
      }
    #endif

    /// A file was considered complete too early. Another file that was rewritten is not replaced without `--overwrite`.
    @Test(arguments: ["put+", "tus+", "resumable+"])
    func aGrownFileReplacesItsBeginning(_ uploadProtocol: String) async throws {
      // Size and seed determine the bytes: with this seed, these are the first bytes of the file that is written below.
      try scratch.file("gallery/film.mov", 100_000, seed: 200_001)
      try scratch.file("gallery/other.mov", 100_000)
      try scratch.file("gallery/taken.mov", 100_000, seed: 200_001)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: uploadProtocol + server.url, in: scratch)
      try await watch.expectSame(at: server.folder)
      // Another client has replaced the sent file at the server.
      try Data(repeating: 9, count: 100_000).write(to: URL(fileURLWithPath: server.folder.path + "/taken.mov"))
      try scratch.file("gallery/other.mov", 300_000, seed: 2)
      try scratch.file("gallery/taken.mov", 300_000)
      try scratch.file("gallery/film.mov", 300_000)
      try await watch.until("the rest arrives") { server.folder.files()["film.mov"] == 300_000 ? true : nil }
      try await watch.until("the others are refused") {
        watch.command.errors.components(separatedBy: "these would be 300000").count > 2 ? true : nil
      }
      #expect(
        FileManager.default.contentsEqual(atPath: gallery("film.mov"), andPath: server.folder.path + "/film.mov"))
      #expect(server.folder.files()["other.mov"] == 100_000 && server.folder.files()["taken.mov"] == 100_000)
      #expect(try await watch.stop() == .exited(130))
      // A manual push requires `--overwrite`.
      try scratch.file("gallery/film.mov", 400_000)
      let (end, push) = try await fullbore("push", gallery("film.mov"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(1) && push.errors.contains("--overwrite"), "\(push.errors)")
    }
  }
}
