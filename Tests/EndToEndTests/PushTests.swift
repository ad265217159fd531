import Foundation
import Testing

extension EndToEnd {
  /// `fullbore push` of folders and files into `fullbore serve`.
  @Suite(.serialized) struct PushTests {
    let scratch = try! Scratch()

    /// The slash at the end of the destination was forgotten.
    @Test(arguments: ["", "tus+", "resumable+", "put+"], [false, true])
    func aFolderIsNoFileToReplace(_ uploadProtocol: String, _ isPipe: Bool) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("new", 1000)
      try scratch.folder("received/day")
      let old = server.folder.path + "/day/day"
      try Data([1, 2, 3]).write(to: URL(fileURLWithPath: old))
      for options in [[], ["--overwrite"]] {
        let words = ["push"] + options + [isPipe ? "-" : file, uploadProtocol + server.url + "day"]
        let push = try Command("bash", ["-c", "exec \"$0\" \"$@\" < '\(file)'", Tool.fullbore] + words, in: scratch)
        #expect(try await push.wait() != .exited(0), "\(push.output)\(push.errors)")
        #expect(push.errors.contains("/day is a folder. To send into that folder, end"), "\(push.errors)")
      }
      #expect(server.folder.files() == ["day/day": 3], "\(server.folder.files())")
    }

    /// Creates files with error-prone names and sizes.
    private func makeGallery() throws -> Folder {
      let names = [
        "plain.jpg", "with space.jpg", "Ünïcödé ☃.jpg", "100% #1?.jpg", "a+b&c=d;e.jpg", "-dash.jpg", "'\\\".jpg",
      ]
      for (number, name) in names.enumerated() { try scratch.file("gallery/\(name)", 1000 + number) }
      for size in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1] { try scratch.file("gallery/sizes/\(size).bin", size) }
      try scratch.file("gallery/a/b/c/d/deep.jpg", 70_000)
      try scratch.file("gallery/video.mov", 24 << 20)
      return Folder(scratch.path("gallery"))
    }

    @Test(arguments: ["", "put+", "tus+", "resumable+"])
    func pushedFolderArrivesByteForByte(_ uploadProtocol: String) async throws {
      let gallery = try makeGallery()
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", gallery.path + "/", uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0)
    }

    @Test func folderWithoutSlashArrivesUnderItsName() async throws {
      let gallery = try makeGallery()
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", gallery.path, server.url + "2026/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      gallery.expectSame(as: Folder(server.folder.path + "/2026/gallery"))
    }

    @Test func fileArrivesUnderTheNameThatWasGiven() async throws {
      let file = try scratch.file("IMG_0001.jpg", 300_000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", file, server.url + "holiday/first.jpg", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(FileManager.default.contentsEqual(atPath: file, andPath: server.folder.path + "/holiday/first.jpg"))
    }

    @Test func hiddenFilesStayHome() async throws {
      try scratch.file("gallery/seen.jpg", 10)
      try scratch.file("gallery/.secret", 10)
      let server = try await ServeProcess.start(in: scratch)
      let (end, _) = try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(0))
      #expect(server.folder.files().keys.sorted() == ["seen.jpg"])
    }

    @Test func nameThatIsNotUTF8ArrivesAsItIs() async throws {
      try scratch.folder("gallery")
      let name: [CChar] = Array("IMG_".utf8CString.dropLast()) + [CChar(bitPattern: 0xFF), 0x2E, 0x6A, 0]
      let source = Array((scratch.path("gallery") + "/").utf8CString.dropLast()) + name
      let descriptor = open(source, O_WRONLY | O_CREAT, 0o600)
      #expect(write(descriptor, "bytes", 5) == 5)
      close(descriptor)
      let server = try await ServeProcess.start(in: scratch)
      for uploadProtocol in ["put+", "tus+", "resumable+"] {
        let destination = uploadProtocol + server.url + uploadProtocol
        let (end, push) = try await fullbore("push", scratch.path("gallery/"), destination, in: scratch)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
        let arrived = Array("\(server.folder.path)/\(uploadProtocol)/".utf8CString.dropLast()) + name
        #expect(access(arrived, R_OK) == 0, "\(uploadProtocol): the name changed on its way")
      }
    }

    @Test func aSecondPushSendsNothingAndReportsIt() async throws {
      let gallery = try makeGallery()
      let server = try await ServeProcess.start(in: scratch)
      let (first, _) = try await fullbore("push", gallery.path + "/", server.url, in: scratch)
      #expect(first == .exited(0))
      // The file is deleted at the server: if it were sent again, it would be there.
      try FileManager.default.removeItem(atPath: server.folder.path + "/plain.jpg")
      let (second, again) = try await fullbore("push", gallery.path + "/", server.url, in: scratch)
      #expect(second == .exited(0))
      #expect(again.output.contains("done before"), "\(again.output)")
      #expect(server.folder.files()["plain.jpg"] == nil)
    }

    @Test func changedFileIsSentAgain() async throws {
      try scratch.file("gallery/one.jpg", 100_000)
      try scratch.file("gallery/two.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      _ = try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch)
      try scratch.file("gallery/two.jpg", 100_001)
      let (end, push) = try await fullbore("push", "--overwrite", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test func nameWithTheSameBytesIsASuccessAndOtherBytesAreNot() async throws {
      try scratch.file("gallery/same.jpg", 100_000)
      try scratch.file("gallery/other.jpg", 100_000)
      try scratch.file("gallery/new.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("received/same.jpg", 100_000)
      try scratch.file("received/other.jpg", 100_000, seed: 2)
      let kept = try Data(contentsOf: URL(fileURLWithPath: scratch.path("received/other.jpg")))

      let (end, push) = try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch)
      #expect(end == .exited(1))
      #expect(push.errors.contains("other.jpg") && !push.errors.contains("same.jpg"), "\(push.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("received/other.jpg"))) == kept)
      #expect(server.folder.hasSameBytes("new.jpg", as: Folder(scratch.path("gallery"))))

      let (over, again) = try await fullbore("push", "--overwrite", scratch.path("gallery/"), server.url, in: scratch)
      #expect(over == .exited(0), "\(again.output)\(again.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    /// The message is printed once, however many files are active when the first response arrives.
    @Test(arguments: ["put+", "tus+", "resumable+", "form+"]) func wrongCredentialsAreReportedOnce(
      _ uploadProtocol: String
    )
      async throws
    {
      for number in 0..<40 { try scratch.file("gallery/\(number).jpg", 100) }
      let (right, wrong) = (scratch.path("right"), scratch.path("wrong"))
      try Data("right".utf8).write(to: URL(fileURLWithPath: right))
      try Data("wrong".utf8).write(to: URL(fileURLWithPath: wrong))
      let server = try await ServeProcess.start(in: scratch, "--token-file", right)
      let (end, push) = try await fullbore(
        "push", "--token-file", wrong, scratch.path("gallery/"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(3))
      #expect(push.errors.components(separatedBy: " 401 ").count == 2, "\(push.errors)")
      #expect(push.errors.contains("stopped: nothing else would succeed"), "\(push.errors)")
    }

    @Test(arguments: ["", "put+", "tus+", "resumable+", "dav+", "form+"])
    func aReadOnlyServerIsNoMatterOfThePath(_ uploadProtocol: String) async throws {
      for number in 0..<40 { try scratch.file("gallery/\(number).jpg", 100) }
      let server = try await ServeProcess.start(in: scratch, "--read-only")
      let (end, push) = try await fullbore("push", scratch.path("gallery/"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(3))
      #expect(push.errors.components(separatedBy: "this server is read-only").count == 2, "\(push.errors)")
      #expect(push.errors.contains("--read-only") && !push.errors.contains("Is the path right?"), "\(push.errors)")
    }

    @Test(arguments: ["put+", "tus+", "resumable+", "form+"]) func aServerOfAnotherNameIsReportedOnce(
      _ uploadProtocol: String
    )
      async throws
    {
      for number in 0..<40 { try scratch.file("gallery/\(number).jpg", 100) }
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--header", "Host: nas.example", scratch.path("gallery/"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(3))
      #expect(push.errors.components(separatedBy: " 421").count == 2, "\(push.errors)")
    }

    @Test func fileThatChangesWhileItIsSentIsNeverPublished() async throws {
      let file = try scratch.file("gallery/video.mov", 16 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "4M", file, server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
      try handle.seek(toOffset: 12 << 20)
      try handle.write(contentsOf: Data("another version".utf8))
      try handle.close()
      #expect(try await push.wait() == .exited(1))
      #expect(push.errors.contains("video.mov"), "\(push.errors)")
      #expect(server.folder.files().isEmpty)
    }
  }
}
