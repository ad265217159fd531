import Foundation
import TestSupport
import Testing

// Programs find the film, the RAW file and the edits of a photo by its name, so all of these get its number.
extension EndToEnd.NameConflictTests {
  private static let group = [
    "IMG_0001.AAE", "IMG_0001.DNG", "IMG_0001.HEIC", "IMG_0001.HEIC.xmp", "IMG_0001.MOV", "IMG_E0001.HEIC",
  ]
  private static let numbered = [
    "IMG_0001-2.AAE", "IMG_0001-2.DNG", "IMG_0001-2.HEIC", "IMG_0001-2.HEIC.xmp", "IMG_0001-2.MOV", "IMG_E0001-2.HEIC",
  ]

  /// The films are larger than what is sent first.
  private func makeCards() throws {
    for (index, card) in ["one", "two"].enumerated() {
      for name in ["IMG_0002.HEIC", "IMG_0002.MOV"] { try scratch.photo("\(card)/\(name)", seed: UInt64(index)) }
    }
    try scratch.photo("one/IMG_0001.HEIC", seed: 1)
    for (index, name) in Self.group.enumerated() {
      try scratch.file("two/\(name)", name.hasSuffix("HEIC") ? 5 << 20 : 1000, seed: UInt64(10 + index))
    }
  }

  /// The journal has no file that is not done.
  func expectNothingIsLeft() async throws {
    let (_, status) = try await fullbore("status", in: scratch)
    for word in ["failed", "unfinished", "interrupted"] {
      #expect(!status.output.contains(word), "\(status.output)")
    }
  }

  private func expectPairs(_ server: ServeProcess) {
    let others = ["IMG_0001.HEIC", "IMG_0002-2.HEIC", "IMG_0002-2.MOV", "IMG_0002.HEIC", "IMG_0002.MOV"]
    #expect(server.folder.files().keys.sorted() == (others + Self.numbered).sorted())
    for (own, name) in zip(Self.group, Self.numbered) {
      #expect(arrived(server, name) == bytes(scratch.path("two/\(own)")), "\(name)")
    }
  }

  @Test(arguments: ["", "put+", "tus+", "dav+"])
  func theFilesOfOnePhotoGetItsNumber(_ uploadProtocol: String) async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    for _ in 0..<2 {
      let (end, command) = try await push(
        "--on-conflict", "rename", scratch.path("one/"), scratch.path("two/"), uploadProtocol + server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(!command.errors.contains("programs that pair files by name"), "\(command.errors)")
      expectPairs(server)
    }
  }

  /// Only the server knows that the name is taken, and says so when the photo is sent.
  @Test(arguments: ["", "put+", "tus+", "dav+"], ["1", "16"])
  func theFilesOfOnePhotoGetTheNumberThatItGotThere(_ uploadProtocol: String, _ jobs: String) async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    #expect(try await push(scratch.path("one/"), url).end == .exited(0))
    for _ in 0..<2 {
      let (end, command) = try await push("-j", jobs, "--on-conflict", "rename", scratch.path("two/"), url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      expectPairs(server)
    }
    try await expectNothingIsLeft()
  }

  /// A photo that was refused as a whole, and waits at the server in part, gets its number in the next push.
  @Test(arguments: ["", "put+", "tus+", "resumable+", "dav+"])
  func aRefusedPhotoGetsItsNumberInTheNextPush(_ uploadProtocol: String) async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    #expect(try await push(scratch.path("one/"), url).end == .exited(0))
    let (refused, first) = try await push(scratch.path("two/"), url)
    #expect(refused == .exited(1), "\(first.output)\(first.errors)")
    #expect(server.folder.files().keys.sorted() == ["IMG_0001.HEIC", "IMG_0002.HEIC", "IMG_0002.MOV"])
    let (end, command) = try await push("--on-conflict", "rename", scratch.path("two/"), url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    expectPairs(server)
    try await expectNothingIsLeft()
    // A WebDAV server tells no digests.
    if uploadProtocol == "dav+" { return }
    let (same, check) = try await fullbore("check", scratch.path("two/"), url, in: scratch)
    #expect(same == .exited(0), "\(check.output)\(check.errors)")
  }

  /// Programs would take the film and the sidecar of the second photo for those of the first one.
  @Test(arguments: ["", "put+", "dav+"], ["fail", "skip", "overwrite"])
  func noFileOfAPhotoGoesIfTheNameOfOneIsTakenInThePush(_ uploadProtocol: String, _ choice: String) async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    let url = uploadProtocol + server.url
    let (end, command) = try await push(
      "--on-conflict", choice, scratch.path("one/"), scratch.path("two/"), url)
    #expect(end == .exited(1), "\(command.output)\(command.errors)")
    #expect(server.folder.files().keys.sorted() == ["IMG_0001.HEIC", "IMG_0002.HEIC", "IMG_0002.MOV"])
    for name in Self.group where choice != "skip" {
      #expect(command.errors.contains("two/\(name) is not sent"), "\(command.errors)")
    }
    let (renamed, again) = try await push(
      "--on-conflict", "rename", scratch.path("one/"), scratch.path("two/"), url)
    #expect(renamed == .exited(0), "\(again.output)\(again.errors)")
    expectPairs(server)
    try await expectNothingIsLeft()
  }

  @Test func aLayoutNumbersTheFilesOfOnePhotoTogether() async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    let (end, command) = try await push(
      "--layout", "all/{stem}_{counter}.{ext}", scratch.path("one/"), scratch.path("two/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    let names = Set(server.folder.files().keys)
    for name in [
      "IMG_0001_2.AAE", "IMG_0001_2.HEIC", "IMG_0001_2.HEIC.xmp", "IMG_0001_2.MOV", "IMG_0002_2.HEIC", "IMG_0002_2.MOV",
    ] {
      #expect(names.contains("all/\(name)"), "\(names)")
    }
  }

  /// What waits for its photo is sent all the same where that is not part of the push.
  @Test func filesWithoutTheirPhotoAreSent() async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    let (end, command) = try await push(
      "--on-conflict", "rename", "--include", "*.MOV", "--include", "*.AAE", scratch.path("two/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(server.folder.files().keys.sorted() == ["IMG_0001.AAE", "IMG_0001.MOV", "IMG_0002.MOV"])
  }

  /// A file that arrived before its photo got a number is named.
  @Test func aSidecarThatGotNoNumberIsNamed() async throws {
    try makeCards()
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await push(scratch.path("one/"), server.url).end == .exited(0))
    #expect(try await push(scratch.path("two/IMG_0001.AAE"), server.url).end == .exited(0))
    let (end, command) = try await push("--on-conflict", "rename", scratch.path("two/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    let told = command.output + command.errors
    #expect(told.contains("two/IMG_0001.HEIC arrived as IMG_0001-2.HEIC"), "\(told)")
    #expect(told.contains("two/IMG_0001.AAE, which belongs to it"), "\(told)")
  }
}
