import Foundation
import TestSupport
import Testing

// Photos of one name that have different kinds of files.
extension EndToEnd.NameConflictTests {
  /// The next run gives no other photo the number under which a picture was being sent.
  @Test func aPhotoOfAKilledPushKeepsItsNumber() async throws {
    try scratch.photo("old/IMG_1.JPG", seed: 99)
    try scratch.file("one/IMG_1.JPG", 16 << 20, seed: 1)
    for (index, name) in ["one/IMG_1.XMP", "two/IMG_1.CR2", "two/IMG_1.XMP", "three/IMG_1.MOV", "three/IMG_1.XMP"]
      .enumerated()
    {
      try scratch.photo(name, seed: UInt64(10 + index))
    }
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await push(scratch.path("old/"), server.url).end == .exited(0))
    let killed = try Command(
      Tool.fullbore, ["push", "--on-conflict", "rename", "--bwlimit", "4M", scratch.path("one/"), server.url],
      in: scratch)
    try await until("bytes of the picture are there") { server.folder.received() > 2 << 20 ? true : nil }
    try await untilEveryFileIsKnown(in: scratch)
    killed.kill(SIGKILL)
    try await killed.wait()
    for _ in 0..<2 {
      let (end, command) = try await push(
        "--on-conflict", "rename", scratch.path("three/"), scratch.path("two/"), scratch.path("one/"), server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      let names = ["IMG_1-2.JPG", "IMG_1-2.XMP", "IMG_1-3.CR2", "IMG_1-3.XMP", "IMG_1.JPG", "IMG_1.MOV", "IMG_1.XMP"]
      #expect(server.folder.files().keys.sorted() == names)
      #expect(arrived(server, "IMG_1-2.XMP") == bytes(scratch.path("one/IMG_1.XMP")))
      #expect(arrived(server, "IMG_1-3.XMP") == bytes(scratch.path("two/IMG_1.XMP")))
    }
    try await expectNothingIsLeft()
  }

  /// Programs would take the film of the first photo and the picture of the second one for a Live Photo.
  @Test func photosOfOneNameThatShareNoFileNameGetNumbersToo() async throws {
    let cards = [
      "one": ["IMG_1.HEIC", "IMG_1.MOV"], "two": ["IMG_1.AAE", "IMG_1.JPG", "IMG_E1.JPG"],
      // A copy of the first picture, and what belongs to it.
      "zero": ["IMG_1.HEIC", "IMG_1.XMP"],
    ]
    for (card, names) in cards {
      for name in names {
        try scratch.photo("\(card)/\(name)", seed: name.hasSuffix("HEIC") ? 1 : UInt64(card.count + name.count))
      }
    }
    let server = try await ServeProcess.start(in: scratch)
    for _ in 0..<2 {
      let (end, command) = try await push(
        "--on-conflict", "rename", scratch.path("one/"), scratch.path("two/"), scratch.path("zero/"), server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(
        server.folder.files().keys.sorted() == [
          "IMG_1-2.AAE", "IMG_1-2.JPG", "IMG_1.HEIC", "IMG_1.MOV", "IMG_1.XMP", "IMG_E1-2.JPG",
        ])
    }
  }

  /// A camera with two cards writes the raw files to one of them and the pictures to the other.
  @Test(arguments: [["raws/", "pictures/"], ["pictures/", "raws/"]])
  func rawFilesAndPicturesOfTwoCardsStayTogether(_ cards: [String]) async throws {
    try scratch.photo("raws/IMG_1.CR2", seed: 1)
    try scratch.photo("raws/IMG_1.CR2.xmp", seed: 2)
    try scratch.photo("pictures/IMG_1.JPG", seed: 3)
    let server = try await ServeProcess.start(in: scratch)
    for _ in 0..<2 {
      let (end, command) = try await push(
        "--on-conflict", "rename", scratch.path(cards[0]), scratch.path(cards[1]), server.url)
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(server.folder.files().keys.sorted() == ["IMG_1.CR2", "IMG_1.CR2.xmp", "IMG_1.JPG"])
    }
  }
}
