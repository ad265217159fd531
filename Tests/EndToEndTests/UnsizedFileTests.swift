import Foundation
import Testing

extension EndToEnd {
  /// Files that report size 0 but have content: the size is not trusted before the end was read.
  @Suite(.serialized) struct UnsizedFileTests {
    let scratch = try! Scratch()

    @Test(arguments: ["tus+", "put+", "resumable+"])
    func aFileOfSizeZeroThatHasContentArrivesWhole(_ uploadProtocol: String) async throws {
      let empty = try scratch.file("empty.jpg", 0)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "/proc/version", "/proc/cmdline", empty, uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(push.output.contains("3 files sent"), "\(push.output)")
      #expect(server.folder.files()["empty.jpg"] == 0)
      for name in ["version", "cmdline"] {
        let content = try #require(FileManager.default.contents(atPath: "/proc/\(name)"))
        #expect(!content.isEmpty)
        #expect(FileManager.default.contents(atPath: "\(server.folder.path)/\(name)") == content, "\(name)")
      }
    }

    /// The file's first byte is at an unmapped address of the process, so reading fails.
    @Test func oneThatCannotBeReadFailsAndIsNamed() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "/proc/self/mem", server.url, in: scratch)
      #expect(end == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("/proc/self/mem"), "\(push.errors)")
      #expect(server.folder.files().isEmpty)
    }

    @Test func itsChecksumIsThatOfItsContent() async throws {
      let (end, sum) = try await fullbore("checksum", "/proc/version", in: scratch)
      #expect(end == .exited(0), "\(sum.errors)")
      let copy = scratch.path("copy")
      try #require(FileManager.default.contents(atPath: "/proc/version")).write(to: URL(fileURLWithPath: copy))
      let (_, other) = try await fullbore("checksum", copy, in: scratch)
      #expect(sum.output.prefix(64) == other.output.prefix(64))
    }
  }
}
