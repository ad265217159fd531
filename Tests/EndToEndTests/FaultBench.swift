import BlobTesting
import BlobUpload
import Blobs
import Foundation
import Synchronization
import Testing

/// Runs one fault with one protocol, and records the result.
final class FaultBench: Sendable {
  let scratch: Scratch
  /// The server started last.
  private let latest = Mutex<FaultServer?>(nil)

  init() throws { scratch = try Scratch() }

  /// Pushes one file with short time limits until the push ends. Runs `meanwhile` once the push has started.
  func push(
    _ size: Int, to url: String, _ column: FaultColumn, _ options: [String] = [],
    meanwhile: () async throws -> Void = {}
  ) async throws -> Command {
    let file = size > 16 << 20 ? try scratch.hole("video.mov", size) : try scratch.file("video.mov", size)
    let limits = ["--retries", "1", "--timeout", "1s", "--finish-timeout", "2s"]
    let push = try Command(
      Tool.fullbore, ["push"] + limits + options + [file] + column.destination(url), in: scratch,
      environment: column.environment)
    try await meanwhile()
    try await push.wait(.seconds(30))
    return push
  }

  func server(_ column: FaultColumn, isFull: Bool = false) async throws -> FaultServer {
    let server = try await FaultServer.start(for: column, isFull: isFull, in: scratch)
    latest.withLock { $0 = server }
    return server
  }

  func kill() async throws { try await latest.withLock { $0 }?.kill() }

  /// Kills and restarts the server. `losingAll`: the new one has no data of the old one.
  func restart(losingAll: Bool = false) async throws {
    guard let again = try await latest.withLock({ $0 })?.restarted(losingAll, in: scratch) else { return }
    latest.withLock { $0 = again }
  }

  /// `openssl s_server` with a self-signed certificate.
  func secureServer() async throws -> PeerServer {
    let openssl = try #require(Tool.find("openssl"), "openssl is not installed: scripts/bootstrap test")
    let certificate = try await TestCertificate.selfSigned(for: "IP:127.0.0.1", in: scratch)
    return try await PeerServer(openssl, scheme: "https", in: scratch) { port in
      [
        "s_server", "-quiet", "-www", "-accept", "127.0.0.1:\(port)", "-cert", certificate.path, "-key",
        certificate.key,
      ]
    }
  }

  /// A cell of the table: the exit status, the first message, and what remains in the journal and at the server.
  func cell(of push: Command) async throws -> FaultCell {
    guard case .exited(let status) = push.end else { throw Command.Failure("\(push.name): \(push.end as Any)") }
    // On a busy machine a push may first report that it waits for the server.
    let message = push.errors.split(separator: "\n").first { !$0.hasSuffix("trying again") }
    return FaultCell(
      status: status, message: message.map { FaultMessage(readable($0)) }, here: try await leftHere(),
      there: try leftThere())
  }

  /// Replaces the parts that differ between runs: ports, ids, temporary folders, byte counts that depend on kernel
  /// buffers.
  private func readable(_ message: Substring) -> String {
    var text = String(message).replacingOccurrences(of: scratch.path, with: "/home/me")
    for (pattern, replacement) in [
      (#"127\.0\.0\.1:[0-9]+"#, "nas:8080"), (#"[0-9]{4,} (bytes|received)"#, "N $1"),
      (#"sent of [0-9]+"#, "sent of N"),
      (#"after [0-9]+ bytes"#, "after N bytes"),
      (#"byte [0-9]{3,}"#, "byte N"), (#"[A-Za-z0-9_-]{20,}"#, "ID"),
    ] {
      text = text.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
    }
    return text.replacingOccurrences(of: "|", with: "\\|")
  }

  /// The state in the journal.
  private func leftHere() async throws -> String {
    let path = scratch.path("journal.sqlite")
    if !FileManager.default.fileExists(atPath: path) { return "nothing" }
    let journal = try await Journal(at: BytePath(path))
    defer { Task { await journal.close() } }
    if let entry = try await journal.unfinished().first {
      return entry.session == nil ? "to be sent from the start" : "to go on at what the server has"
    }
    if try await !journal.listings().isEmpty { return "the push, to be run again" }
    return try await journal.entries(.done, limit: 1).isEmpty ? "nothing" : "done"
  }

  /// The state at the server; nil for a scripted server.
  private func leftThere() throws -> String? {
    guard let server = latest.withLock({ $0 }) else { return nil }
    let whole = try Data(contentsOf: URL(fileURLWithPath: scratch.path("video.mov")))
    if server.contents("video.mov") == whole { return "the whole file" }
    if !server.names().isEmpty { return "**a file that is not whole**" }
    return server.unfinished() > 0 ? "what had come, unpublished" : "nothing"
  }
}
