import BlobTesting
import BlobUpload
import Blobs
import Foundation
import Synchronization
import Testing

/// Where one fault is played against one protocol, and what was seen there.
final class FaultBench: Sendable {
  let scratch: Scratch
  private let servers = Mutex<[ServeProcess]>([])

  init() throws { scratch = try Scratch() }

  /// Pushes one file with short limits, to its end; `meanwhile` happens once it has started.
  func push(
    _ size: Int, to url: String, _ column: FaultColumn, _ options: [String] = [],
    meanwhile: () async throws -> Void = {}
  ) async throws -> Command {
    let file = size > 16 << 20 ? try scratch.hole("video.mov", size) : try scratch.file("video.mov", size)
    let limits = ["--retries", "1", "--timeout", "1s", "--finish-timeout", "2s"]
    let push = try Command(Tool.fullbore, ["push"] + limits + options + [file, column.prefix + url], in: scratch)
    try await meanwhile()
    try await push.wait(.seconds(30))
    return push
  }

  /// One that comes back listens where no other program is given a port while it is away. ip(7), ip_local_port_range.
  func server(comesBack: Bool = false, environment: [String: String] = [:]) async throws -> ServeProcess {
    let port = comesBack ? Int.random(in: 20_000..<32_000) : 0
    let server = try await ServeProcess.start(in: scratch, port: port, environment: environment)
    servers.withLock { $0.append(server) }
    return server
  }

  func serveAgain(_ server: ServeProcess) async throws {
    let again = try await server.startAgain(in: scratch)
    servers.withLock { $0.append(again) }
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

  /// A cell of the table: the exit status, the first message, and what is left where.
  func cell(of push: Command) async throws -> String {
    guard case .exited(let status) = push.end else { throw Command.Failure("\(push.name): \(push.end as Any)") }
    var lines = ["exit \(status)"]
    if let message = push.errors.split(separator: "\n").first { lines.append("“\(readable(message))”") }
    lines.append("here: \(try await leftHere())")
    if let there = leftThere() { lines.append("there: \(there)") }
    return lines.joined(separator: "<br>")
  }

  /// Without what differs from run to run: ports, ids, temporary folders, what the kernel's buffers took.
  private func readable(_ message: Substring) -> String {
    var text = String(message).replacingOccurrences(of: scratch.path, with: "/home/me")
    for (pattern, replacement) in [
      (#"127\.0\.0\.1:[0-9]+"#, "nas:8080"), (#"[0-9]{4,} (bytes|received)"#, "N $1"),
      (#"after [0-9]+ bytes"#, "after N bytes"),
      (#"byte [0-9]{3,}"#, "byte N"), (#"[A-Za-z0-9_-]{20,}"#, "ID"),
    ] {
      text = text.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
    }
    return text.replacingOccurrences(of: "|", with: "\\|")
  }

  /// What the journal says.
  private func leftHere() async throws -> String {
    let path = scratch.path("journal.sqlite")
    if !FileManager.default.fileExists(atPath: path) { return "nothing" }
    let journal = try await Journal(at: BytePath(path))
    defer { Task { await journal.close() } }
    if let entry = try await journal.unfinished().first {
      return entry.session == nil ? "to be sent from the start" : "to go on at what the server has"
    }
    return try await journal.entries(.done, limit: 1).isEmpty ? "nothing" : "done"
  }

  /// What our own server has; nil for others.
  private func leftThere() -> String? {
    guard let folder = servers.withLock({ $0.last })?.folder else { return nil }
    let whole = folder.hasSameBytes("video.mov", as: Folder(scratch.path))
    if whole { return "the whole file" }
    if !folder.files().isEmpty { return "**a file that is not whole**" }
    return folder.unfinished() > 0 ? "what had come, unpublished" : "nothing"
  }
}

extension ServeProcess {
  /// Kills it once it has received so much.
  func kill(after bytes: Int) async throws {
    try await until("the server has \(bytes) bytes") { folder.received() >= bytes ? true : nil }
    command.kill(SIGKILL)
    try await command.wait()
  }
}
