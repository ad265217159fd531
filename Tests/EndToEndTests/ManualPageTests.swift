import Foundation
import Testing

extension EndToEnd {
  /// The manual page, read by the program that checks such pages.
  @Suite struct ManualPageTests {
    @Test(.enabled(if: Tool.find("mandoc") != nil, "there is no mandoc: scripts/bootstrap test installs it"))
    func theManualHasNoFault() async throws {
      let scratch = try Scratch()
      let manual = try Command(Tool.fullbore, ["manual"], in: scratch)
      #expect(try await manual.wait() == .exited(0))
      let page = scratch.path("fullbore.1")
      try manual.output.write(toFile: page, atomically: false, encoding: .utf8)
      let check = try Command("mandoc", ["-Tlint", "-Wwarning", page], in: scratch)
      #expect(try await check.wait() == .exited(0), "\(check.output)\(check.errors)")
    }
  }
}
