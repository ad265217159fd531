import Foundation
import Testing

/// A private PostgreSQL server, which all tests of this process share. It ends with the process, whose end of the pipe it
/// waits for.
package final class TestDatabase: Sendable {
  /// nil: PostgreSQL is not installed, or does not start.
  package static let shared = try? TestDatabase()
  /// Whether the tests run. `scripts/test` demands it.
  package static let isThereOrWanted = shared != nil || ProcessInfo.processInfo.environment["FULLBORE_PEERS"] == "1"
  package static let reason: Comment = "PostgreSQL does not start: scripts/bootstrap test"

  package let url: String
  private let input = Pipe()

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fullbore-postgres-\(UUID().uuidString)")
    let port = Int.random(in: 20_000..<32_000)
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
      "../../scripts/postgres")
    let (process, output) = (Process(), Pipe())
    process.executableURL = script.standardizedFileURL
    process.arguments = ["--temporary", folder.path, "\(port)"]
    (process.standardInput, process.standardOutput) = (input, output)
    // Programs that other tests start do not hold the pipe open, so the server does not outlive this process.
    guard fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else {
      throw CocoaError(.fileWriteUnknown)
    }
    try process.run()
    let line = output.fileHandleForReading.availableData
    guard String(decoding: line, as: UTF8.self) == "ready\n" else { throw CocoaError(.fileNoSuchFile) }
    url = "postgres://fullbore:secret%20word@127.0.0.1:\(port)/fullbore"
  }
}
