import Foundation
import TestSupport
import Testing

// The files of a photo stay together, and are sent once, also where a push is killed or run again.
extension EndToEnd.NameConflictTests {
  /// Fails unless all files of the card are at the server once, those of each photo with one number. `alone`: files that have
  /// a number of their own.
  private func expectTogether(_ server: ServeProcess, _ card: String, alone: [String] = []) {
    let names = Folder(scratch.path(card)).files().keys.filter { !alone.contains($0) }
    let there = server.folder.files().keys
    let numbers = ["", "-2", "-3", "-4"].filter { number in
      names.allSatisfy { name in
        arrived(server, numbered(name, number)) == bytes(scratch.path("\(card)/\(name)"))
      }
    }
    #expect(numbers.count == 1, "\(card) at \(numbers): \(there.sorted())")
  }

  private func numbered(_ name: String, _ number: String) -> String {
    guard let dot = name.firstIndex(of: ".") else { return name }
    return name[..<dot] + number + name[dot...]
  }

  /// The picture is done and no file of the `resume`, which has only the film.
  @Test(arguments: ["", "put+", "tus+", "dav+"], [true, false])
  func resumeGivesAFilmTheNumberOfAPictureThatIsDone(_ uploadProtocol: String, _ isTaken: Bool) async throws {
    try scratch.photo(isTaken ? "one/IMG_1.HEIC" : "one/IMG_1.DNG", seed: 1)
    try scratch.photo("two/IMG_1.HEIC", seed: 2)
    try scratch.photo("two/IMG_1.DNG", seed: 3)
    try scratch.file("two/IMG_1.MOV", 16 << 20, seed: 4)
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    #expect(try await push(scratch.path("one/"), url).end == .exited(0))
    #expect(
      try await push("--on-conflict", "rename", "--exclude", "*.MOV", scratch.path("two/"), url).end == .exited(0))
    let film = try Command(
      Tool.fullbore,
      ["push", "--on-conflict", "rename", "--include", "*.MOV", "--bwlimit", "4M", scratch.path("two/"), url],
      in: scratch)
    try await until("bytes of the film are there") { server.folder.received() > 2 << 20 ? true : nil }
    try await untilEveryFileIsKnown(in: scratch)
    film.kill(SIGKILL)
    try await film.wait()
    for round in 0..<2 {
      let (end, resume) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(round) \(resume.output)\(resume.errors)")
      expectTogether(server, "two", alone: isTaken ? [] : ["IMG_1.DNG"])
      #expect(server.folder.files().count == 4, "\(server.folder.files())")
    }
    try await expectNothingIsLeft()
  }

  /// Only the name of the RAW file is taken: it gets a number alone, and the others stay with the picture.
  @Test(arguments: ["", "put+", "tus+", "dav+"], ["1", "16"])
  func aTakenNameOfAnotherFileThanThePictureConcernsThatFileAlone(_ uploadProtocol: String, _ jobs: String)
    async throws
  {
    try scratch.photo("one/IMG_1.DNG", seed: 99)
    let card = ["HEIC", "DNG", "CR2", "MOV", "HEIC.xmp", "AAE"].map { "IMG_1.\($0)" } + ["IMG_E1.JPG", "IMG_O1.AAE"]
    for (index, name) in card.enumerated() { try scratch.photo("two/\(name)", seed: UInt64(index)) }
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    #expect(try await push(scratch.path("one/"), url).end == .exited(0))
    for _ in 0..<3 {
      let (end, command) = try await push("-j", jobs, "--on-conflict", "rename", scratch.path("two/"), url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(server.folder.files().keys.sorted() == (card + ["IMG_1-2.DNG"]).sorted())
    }
  }

  /// The names without a number have become free since the first push.
  @Test(arguments: ["", "tus+"]) func aRenamedFileIsNotSentAgainWhereItsNameIsFreeNow(_ uploadProtocol: String)
    async throws
  {
    for (index, card) in ["one", "two"].enumerated() {
      for name in ["IMG_1.HEIC", "IMG_1.MOV", "film.mkv"] { try scratch.photo("\(card)/\(name)", seed: UInt64(index)) }
    }
    let server = try await ServeProcess.start(in: scratch)
    let words = ["--on-conflict", "rename", scratch.path("two/"), uploadProtocol + server.url]
    #expect(try await push(scratch.path("one/"), uploadProtocol + server.url).end == .exited(0))
    for round in 0..<3 {
      let (end, command) = try await push(words[0], words[1], words[2], words[3])
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      let taken = round == 0 ? ["IMG_1.HEIC", "IMG_1.MOV", "film.mkv"] : []
      #expect(
        server.folder.files().keys.sorted() == (["IMG_1-2.HEIC", "IMG_1-2.MOV", "film-2.mkv"] + taken).sorted())
      for name in taken { try FileManager.default.removeItem(atPath: "\(server.folder.path)/\(name)") }
    }
    try await expectNothingIsLeft()
  }

  @Test func aCountedFileIsNotSentAgainWhereItsNameIsFreeNow() async throws {
    for (index, card) in ["one", "two"].enumerated() {
      for name in ["IMG_1.HEIC", "IMG_1.MOV"] { try scratch.photo("\(card)/\(name)", seed: UInt64(index)) }
    }
    let server = try await ServeProcess.start(in: scratch)
    let layout = "{counter}/{name}"
    #expect(try await push("--layout", layout, scratch.path("one/"), server.url).end == .exited(0))
    for _ in 0..<2 {
      let (end, command) = try await push("--layout", layout, scratch.path("two/"), server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      let names = server.folder.files().keys.sorted()
      #expect(names.filter { $0.hasPrefix("2/") } == ["2/IMG_1.HEIC", "2/IMG_1.MOV"], "\(names)")
      #expect(arrived(server, "1/IMG_1.HEIC") != bytes(scratch.path("two/IMG_1.HEIC")))
      try? FileManager.default.removeItem(atPath: "\(server.folder.path)/1")
    }
  }

  /// A picture that gets its number at the destination does not get that of another photo of the push.
  @Test(arguments: ["", "put+", "tus+"], ["1", "16"])
  func twoPhotosOfOnePushAreNotMixed(_ uploadProtocol: String, _ jobs: String) async throws {
    try scratch.photo("old/IMG_1.HEIC", seed: 99)
    for (index, name) in ["HEIC", "MOV", "AAE"].enumerated() {
      try scratch.photo("one/IMG_1.\(name)", seed: UInt64(index))
      try scratch.photo("two/IMG_1.\(name == "HEIC" ? "JPG" : name)", seed: UInt64(10 + index))
    }
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    #expect(try await push(scratch.path("old/"), url).end == .exited(0))
    for _ in 0..<2 {
      let (end, command) = try await push(
        "-j", jobs, "--on-conflict", "rename", scratch.path("one/"), scratch.path("two/"), url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      expectTogether(server, "one")
      expectTogether(server, "two")
      let names = server.folder.files().keys
      #expect(names.count == 7, "\(names.sorted())")
      #expect(!(names.contains("IMG_1-2.HEIC") && names.contains("IMG_1-2.JPG")), "\(names.sorted())")
    }
  }
}
