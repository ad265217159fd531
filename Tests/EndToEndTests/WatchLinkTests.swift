import Foundation
import Testing

extension EndToEnd {
  /// `fullbore watch` with symbolic links. The system tells of a write only where the file itself is.
  @Suite(.serialized) struct WatchLinkTests {
    let scratch = try! Scratch()

    private func link(_ name: String, to target: String) throws {
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("gallery/\(name)"), withDestinationPath: target)
    }

    @Test func aLinkWhoseTargetIsWrittenIsSentAgain() async throws {
      try scratch.file("outside/one.jpg", 10_000)
      try scratch.file("gallery/real.jpg", 11_000)
      try link("before.jpg", to: "../outside/one.jpg")
      try link("alias.jpg", to: "real.jpg")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--overwrite")
      func expect(_ name: String, _ size: Int) async throws {
        try await watch.until("\(name) has \(size) bytes") { server.folder.files()[name] == size ? true : nil }
      }
      try link("later.jpg", to: "../outside/one.jpg")
      for (name, size) in [("before.jpg", 10_000), ("alias.jpg", 11_000), ("later.jpg", 10_000)] {
        try await expect(name, size)
      }
      try scratch.file("outside/one.jpg", 20_000)
      try scratch.file("gallery/real.jpg", 21_000)
      for (name, size) in [("before.jpg", 20_000), ("alias.jpg", 21_000), ("later.jpg", 20_000)] {
        try await expect(name, size)
      }
      // Another file takes the place of the target, as programs save files.
      let next = try scratch.file("outside/next.jpg", 30_000)
      #expect(rename(next, scratch.path("outside/one.jpg")) == 0)
      for name in ["before.jpg", "later.jpg"] { try await expect(name, 30_000) }
      #expect(try await watch.stop() == .exited(130))
      #expect(!watch.command.output.contains("failed"), "\(watch.command.output)\(watch.command.errors)")
    }

    /// The target of a link is on a drive that is mounted later.
    @Test func aLinkWhoseTargetComesLaterIsSent() async throws {
      try scratch.folder("gallery")
      try link("early.jpg", to: "../outside/one.jpg")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch)
      try link("late.jpg", to: "../outside/one.jpg")
      // Files arrive in the order in which they have come.
      try scratch.file("gallery/IMG_1.jpg", 1000)
      try await watch.until("IMG_1 arrives") { server.folder.files()["IMG_1.jpg"] }
      try scratch.file("outside/one.jpg", 10_000)
      for name in ["early.jpg", "late.jpg"] {
        try await watch.until("\(name) arrives") { server.folder.files()[name] == 10_000 ? true : nil }
      }
      #expect(try await watch.stop() == .exited(130))
    }
  }
}
