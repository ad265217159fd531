import Foundation
import Testing

extension EndToEnd {
  /// Cards whose switch for write protection is on.
  @Suite(.serialized) struct ProtectedCardTests {
    let scratch = try! Scratch()

    /// Mounts the folder over itself, read-only, for this command alone.
    private func run(on card: String, _ arguments: [String]) throws -> Command {
      let script = """
        mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && { shift; exec "$@"; }
        """
      return try Command(
        "unshare", ["-rm", "sh", "-c", script, "sh", card, Tool.fullbore] + arguments, in: scratch)
    }

    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"), arguments: ["source", "both"])
    func aHashListThatCannotBeWrittenThereIsExplained(_ place: String) async throws {
      let card = try scratch.folder("CARD")
      try scratch.file("CARD/100A/IMG_1.JPG", 10_000)
      let server = try await ServeProcess.start(in: scratch)
      let push = try run(on: card, ["push", "--mhl", "--mhl-at", place, card, server.url])
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      #expect(
        push.errors.contains(
          "no hash list: make the folder \(card)/ascmhl/: Read-only file system. --mhl-at destination writes"),
        "\(push.errors)")
      let hasList = FileManager.default.fileExists(atPath: "\(server.folder.path)/CARD/ascmhl/ascmhl_chain.xml")
      #expect(hasList == (place == "both"))
    }
  }
}
