import Foundation
import TestSupport
import Testing

// Later runs find the names with numbers that earlier ones gave.
extension EndToEnd.NameConflictTests {
  /// The push is run again without the option, after one with it, after one that had failed, and with the sources in another
  /// order.
  @Test(arguments: ["", "put+", "tus+", "dav+"], ["fail", "skip"])
  func aPushWithoutTheOptionFindsWhatHasANumber(_ uploadProtocol: String, _ choice: String) async throws {
    for (index, card) in ["one", "two"].enumerated() {
      for name in ["IMG_1.HEIC", "IMG_1.MOV", "film.mkv"] { try scratch.photo("\(card)/\(name)", seed: UInt64(index)) }
    }
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    let (one, two) = (scratch.path("one/"), scratch.path("two/"))
    #expect(try await push(one, url).end == .exited(0))
    #expect(try await push("--on-conflict", choice, two, url).end == .exited(1))
    #expect(try await push("--on-conflict", "rename", two, url).end == .exited(0))
    for words in [[two], [one, two], [two, one]] {
      let command = try Command(Tool.fullbore, ["push", "--on-conflict", choice] + words + [url], in: scratch)
      #expect(try await command.wait() == .exited(0), "\(words) \(command.output)\(command.errors)")
      #expect(command.output.contains("\(words.count * 3) done before"), "\(command.output)")
      #expect(server.folder.files().count == 6, "\(server.folder.files())")
      try await expectNothingIsLeft()
    }
    // A file that has changed is not the one that is there.
    try scratch.photo("two/film.mkv", seed: 9)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_600_000_000)], ofItemAtPath: scratch.path("two/film.mkv"))
    let (end, command) = try await push("--on-conflict", choice, two, url)
    #expect(end == .exited(1) && command.output.contains("2 done before"), "\(command.output)\(command.errors)")
  }

  /// What replaces other bytes does so under its own name.
  @Test func aFileWithANumberIsSentUnderItsOwnNameToReplaceTheOther() async throws {
    try scratch.photo("one/a.jpg", seed: 1)
    try scratch.photo("two/a.jpg", seed: 2)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
    #expect(try await push("--on-conflict", "rename", scratch.path("two/"), server.url).end == .exited(0))
    #expect(try await push("--overwrite", scratch.path("two/"), server.url).end == .exited(0))
    #expect(arrived(server, "a.jpg") == bytes(scratch.path("two/a.jpg")))
  }

  /// The server has no groups, so that the picture is done when the push is killed, and its film is not. A new version of the
  /// picture gets another number, and so does the film.
  @Test(.needs(.rclone)) func aFilmOfAnEarlierNumberIsGivenUp() async throws {
    try scratch.photo("card/IMG_1.JPG", seed: 1)
    try scratch.file("card/IMG_1.MOV", 6 << 20, seed: 2)
    let folder = try scratch.folder("received")
    try FileManager.default.createDirectory(atPath: folder + "/card", withIntermediateDirectories: true)
    try Data([1]).write(to: URL(fileURLWithPath: folder + "/card/IMG_1.JPG"))
    let server = try await DavServer.rclone.start(into: folder, in: scratch)
    let words = ["--on-conflict", "rename", scratch.path("card"), "dav+" + server.url]
    let command = try Command(Tool.fullbore, ["push", "--bwlimit", "1M"] + words, in: scratch)
    _ = try await until("the picture has a number") { Folder(folder).files()["card/IMG_1-2.JPG"] }
    command.kill(SIGKILL)
    try await command.wait()
    try scratch.photo("card/IMG_1.JPG", seed: 3)
    let again = try Command(Tool.fullbore, ["push"] + words, in: scratch)
    #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
    try await expectNothingIsLeft()
  }

  /// The picture is done when the push is killed, and its film is claimed and waits behind another one. A film that goes in
  /// parts belongs to no group at the server, which shows the picture without it.
  @Test(
    arguments: [
      ("{counter}/{name}", "2/IMG_1.HEIC", "2/IMG_1.MOV"), ("{stem}_{counter}.{ext}", "IMG_1_2.HEIC", "IMG_1_2.MOV"),
    ])
  func resumeFindsTheCounterOfAPictureThatIsDone(_ layout: String, _ picture: String, _ film: String) async throws {
    try scratch.photo("one/IMG_1.HEIC", seed: 1)
    try scratch.photo("two/IMG_1.HEIC", seed: 2)
    try scratch.file("two/IMG_0.MKV", 16 << 20, seed: 3)
    try scratch.file("two/IMG_1.MOV", 16 << 20, seed: 4)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await push("--layout", layout, scratch.path("one/"), server.url).end == .exited(0))
    let command = try Command(
      Tool.fullbore,
      [
        "push", "-j", "1", "--parts-at-once", "2", "--layout", layout, "--bwlimit", "4M", scratch.path("two/"),
        server.url,
      ], in: scratch)
    try await until("the picture is there") { server.folder.files()[picture] != nil ? true : nil }
    try await untilEveryFileIsKnown(in: scratch)
    try await until("bytes of the other film are there") { server.folder.unfinished() > 1 << 20 ? true : nil }
    command.kill(SIGKILL)
    try await command.wait()
    let (end, resume) = try await fullbore("resume", in: scratch)
    #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
    #expect(
      arrived(server, film) == bytes(scratch.path("two/IMG_1.MOV")), "\(server.folder.files().keys.sorted())")
    #expect(server.folder.files().count == 4, "\(server.folder.files().keys.sorted())")
    try await expectNothingIsLeft()
  }

  /// A watch waits for no picture that it has not found yet, and finds the files in several batches.
  @Test func thePhotosThatAWatchFindsStayTogether() async throws {
    let (count, kinds) = (150, ["AAE", "ARW", "JPG"])
    try scratch.folder("gallery")
    try scratch.folder("received")
    for kind in kinds {
      for number in 0..<count {
        let name = "gallery/IMG_\(number).\(kind)"
        try Data("\(kind) \(number)".utf8).write(to: URL(fileURLWithPath: scratch.path(name)))
        try scratch.age(name)
        if kind != "JPG" { continue }
        try Data("other".utf8).write(to: URL(fileURLWithPath: scratch.path("received/IMG_\(number).JPG")))
      }
    }
    let server = try await ServeProcess.start(in: scratch)
    let watch = try Command(
      Tool.fullbore, ["watch", "--settle", "1ms", "--on-conflict", "rename", scratch.path("gallery/"), server.url],
      in: scratch)
    try await until("all have arrived", .seconds(120)) {
      watch.output.split(separator: "\n").count >= kinds.count * count ? true : nil
    }
    watch.kill(SIGTERM)
    #expect(try await watch.wait() == .exited(130), "\(watch.errors)")
    let names = server.folder.files().keys
    for kind in kinds {
      let numbered = names.count { $0.hasSuffix("-2.\(kind)") }
      #expect(numbered == count, "\(kind): \(numbered)")
    }
  }

  /// One line says how many files were parted from their photo.
  @Test func partedFilesAreCountedInOneLine() async throws {
    for number in 1...30 {
      for name in ["IMG_\(number).HEIC", "IMG_\(number).AAE"] {
        try scratch.photo("two/\(name)", seed: UInt64(number))
        if name.hasSuffix("HEIC") { try scratch.photo("one/\(name)", seed: 99) }
      }
    }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
    #expect(try await push("--include", "*.AAE", scratch.path("two/"), server.url).end == .exited(0))
    let (end, command) = try await push("--on-conflict", "rename", scratch.path("two/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    let lines = command.errors.split(separator: "\n").filter { $0.contains("which belongs to it") }
    #expect(lines.count == 1 && lines.first?.contains("(and so with 29 more files)") == true, "\(command.errors)")
  }
}
