import Foundation
import TestSupport
import Testing

// Two pushes of one tree at the same time, with one journal: each meets files that the other one has.
extension EndToEnd.NameConflictTests {
  private static let count = 24

  private func makePhotos(_ kinds: [String], taken: [String]) throws {
    try scratch.folder("received")
    for number in 0..<Self.count {
      for (index, kind) in kinds.enumerated() {
        try scratch.photo("card/IMG_\(number).\(kind)", seed: UInt64(number * 10 + index))
      }
      for kind in taken { try scratch.photo("received/IMG_\(number).\(kind)", seed: UInt64(10_000 + number)) }
    }
  }

  private func pushTwice(_ words: [String], to url: String) async throws -> [Command] {
    let pushes = try (0..<2).map { _ in
      try Command(Tool.fullbore, ["push"] + words + [scratch.path("card/"), url], in: scratch)
    }
    for push in pushes { try await push.wait() }
    return pushes
  }

  @Test(arguments: ["put+", "tus+", "dav+"])
  func twoPushesGiveTheFilesOfAPhotoOneNumber(_ uploadProtocol: String) async throws {
    let kinds = ["HEIC", "MOV", "xmp"]
    try makePhotos(kinds, taken: ["HEIC"])
    let server = try await ServeProcess.start(in: scratch)
    for push in try await pushTwice(["--on-conflict", "rename"], to: uploadProtocol + server.url) {
      #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
    }
    let photos = (0..<Self.count).flatMap { number in kinds.map { "IMG_\(number)-2.\($0)" } + ["IMG_\(number).HEIC"] }
    #expect(server.folder.files().keys.sorted() == photos.sorted())
    try await expectNothingIsLeft()
  }

  /// The server publishes the files of a photo together.
  @Test(arguments: ["tus+", "resumable+"])
  func twoPushesPublishNoSidecarWithoutItsPicture(_ uploadProtocol: String) async throws {
    try makePhotos(["CR3", "JPG", "xmp"], taken: ["CR3", "JPG"])
    let server = try await ServeProcess.start(in: scratch)
    for push in try await pushTwice([], to: uploadProtocol + server.url) {
      #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
    }
    #expect(server.folder.files().keys.filter { $0.hasSuffix("xmp") }.sorted() == [])
  }

  /// Raw files may be those of a camera's other card, but not of two photos.
  @Test func rawFilesDoNotJoinTwoPhotos() async throws {
    let names = ["1/IMG_1.DNG", "2/IMG_1.JPG", "2/IMG_1.MP4", "3/IMG_1.HEIC", "3/IMG_1.MOV"]
    for (index, name) in names.enumerated() { try scratch.photo("card/\(name)", seed: UInt64(index)) }
    let server = try await ServeProcess.start(in: scratch)
    let (end, command) = try await push(
      "--layout", "{name}", "--on-conflict", "rename", scratch.path("card/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(
      server.folder.files().keys.sorted() == ["IMG_1-2.HEIC", "IMG_1-2.MOV", "IMG_1.DNG", "IMG_1.JPG", "IMG_1.MP4"])
  }

  /// The name of an edit is taken, and another photo has the next number: the edit gets one that no photo has.
  @Test(arguments: ["{name}", "{stem}_{counter}.{ext}"])
  func anEditGetsNoNumberOfAnotherPhoto(_ layout: String) async throws {
    let names = ["1/IMG_0008.HEIC", "1/IMG_E0008.JPG", "2/IMG_0008.HEIC", "2/IMG_0008.MOV"]
    for (index, name) in names.enumerated() { try scratch.photo("card/\(name)", seed: UInt64(index)) }
    let (first, second, other) = layout == "{name}" ? ("", "-2", "-3") : ("_1", "_2", "_3")
    try scratch.photo("received/IMG_E0008\(first).JPG", seed: 99)
    let server = try await ServeProcess.start(in: scratch)
    let (end, command) = try await push(
      "--on-conflict", "rename", "--layout", layout, scratch.path("card/"), server.url)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    let arrived = ["IMG_0008\(first).HEIC", "IMG_0008\(second).HEIC", "IMG_0008\(second).MOV"]
    #expect(
      server.folder.files().keys.sorted()
        == (arrived + ["IMG_E0008\(first).JPG", "IMG_E0008\(other).JPG"]).sorted())
  }
}
