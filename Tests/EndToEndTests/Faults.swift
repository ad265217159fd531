import BlobTesting
import TestSupport
import Foundation

/// The faults of a push; each is a row.
struct Fault: Sendable {
  let name: String
  /// Prepares the fault and pushes. Returns nil if the fault does not exist in this protocol.
  let play: @Sendable (FaultColumn, FaultBench) async throws -> Command?

  init(_ name: String, _ play: @escaping @Sendable (FaultColumn, FaultBench) async throws -> Command?) {
    self.name = name
    self.play = play
  }

  /// A scripted server that runs the same script for every request.
  static func scripted(_ name: String, script: [ScriptedPeer.Step]) -> Fault {
    Fault(name) { column, bench in
      let script = Array(repeating: script, count: 12).flatMap { $0 }
      let peer = ScriptedPeer(column.greeting + script, script)
      defer { withExtendedLifetime(peer) {} }
      // In S3 the client would first check the name, and the fault would hit that request.
      let options = column == .s3 ? ["--overwrite"] : []
      return try await bench.push(1000, to: "http://127.0.0.1:\(peer.port)/", column, options)
    }
  }

  /// The same with a file that is larger than the kernel's socket buffers, so the server must read; the upload has been
  /// created.
  static func scripted(large name: String, script: [ScriptedPeer.Step]) -> Fault {
    Fault(name) { column, bench in
      let peer = ScriptedPeer(column.greeting + column.creation + script, script)
      defer { withExtendedLifetime(peer) {} }
      return try await bench.push(
        64 << 20, to: "http://127.0.0.1:\(peer.port)/", column,
        ["--retries", "0", "--finish-timeout", "30s"] + (column == .s3 ? ["--part-size", "32M"] : []))
    }
  }

  static func status(_ status: Int, _ reason: String, _ fields: String = "") -> Fault {
    scripted(
      "\(status) \(reason)",
      script: [.readRequest, .send("HTTP/1.1 \(status) \(reason)\r\nContent-Length: 0\r\n\(fields)\r\n")])
  }

  static let all: [Fault] = [
    // The name server may be slow.
    Fault("unknown host") { try await $1.push(1000, to: "http://no-such-host.invalid/", $0, ["--timeout", "20s"]) },
    Fault("connection refused") { column, bench in
      let nobody = Loopback.listen()
      Loopback.close(nobody.descriptor)
      return try await bench.push(1000, to: "http://127.0.0.1:\(nobody.port)/", column)
    },
    Fault("self-signed certificate") { column, bench in
      let server = try await bench.secureServer()
      return try await bench.push(1000, to: server.url, column)
    },
    status(202, "Accepted"), status(401, "Unauthorized"), status(403, "Forbidden"), status(404, "Not Found"),
    status(405, "Method Not Allowed"), status(409, "Conflict"), status(413, "Content Too Large"),
    status(423, "Locked"), status(429, "Too Many Requests", "Retry-After: 1\r\n"),
    status(500, "Internal Server Error"), status(502, "Bad Gateway"), status(503, "Service Unavailable"),
    status(507, "Insufficient Storage"),
    scripted("redirect to another place", script: [.readRequest, .send(elsewhere)]),
    scripted("a page for every URL", script: [.readRequest, .send(page)]),
    scripted("success after a first status line that says otherwise", script: [.readRequest, .send(doubled), .close]),
    scripted(large: "success before it has the file", script: [.readHead, .read(1 << 20), .send(soon), .close]),
    scripted("garbage instead of HTTP", script: [.readRequest, .send("SSH-2.0-OpenSSH_9.2\r\n"), .close]),
    scripted("closed in the middle of the answer's head", script: [.readRequest, .send("HTTP/1.1 201 Cre"), .close]),
    scripted("closed in the middle of the answer's body", script: [.readRequest, .send(half), .close]),
    scripted(large: "closed in the middle of the file", script: [.readHead, .read(1 << 20), .close]),
    scripted(large: "silence before the file", script: [.hold]),
    scripted(large: "silence in the middle of the file", script: [.readHead, .read(1 << 20), .hold]),
    scripted("silence after the file", script: [.readRequest, .hold]),
    Fault("an offset that is a lie") { column, bench in
      guard let script = column.lie else { return nil }
      let peer = ScriptedPeer(column.greeting + script, script)
      return try await bench.push(1000, to: "http://127.0.0.1:\(peer.port)/", column)
    },
    Fault("the answer is lost") { column, bench in
      let server = try await bench.server(column)
      let before = column == .s3 ? 2 : column.greeting.isEmpty ? 0 : 1
      let proxy = ChaosProxy(to: server.port, .init([.dropResponse(before + 1)]))
      // Fullbore's server is told the host name; in S3 the client must sign the host that it sends to.
      let host = column == .s3 ? [] : ["--header", "Host: 127.0.0.1"]
      return try await bench.push(1000, to: "http://127.0.0.1:\(proxy.port)/", column, host)
    },
    Fault("the server's disk is full") { column, bench in
      let server = try await bench.server(column, isFull: true)
      return try await bench.push(8 << 20, to: server.url, column)
    },
    interrupted("the server is killed") { try await $0.kill() },
    interrupted("the server is killed and comes back", comesBack: true) { try await $0.restart() },
    interrupted("the server is replaced by an empty one", comesBack: true) { try await $0.restart(losingAll: true) },
  ]

  /// Interrupts in the middle of a file; in S3 in the middle of its parts. The timeout is long, so that a pause of a busy
  /// machine is not the first of the two failures.
  private static func interrupted(
    _ name: String, comesBack: Bool = false, _ interrupt: @escaping @Sendable (FaultBench) async throws -> Void
  ) -> Fault {
    Fault(name) { column, bench in
      let server = try await bench.server(column)
      let size = column == .s3 ? 24 << 20 : 8 << 20
      let speed = column == .s3 ? ["--part-size", "5M", "--bwlimit", "16M"] : ["--bwlimit", "4M"]
      let limits = ["--timeout", "20s"] + (comesBack ? ["--retries", "8"] : [])
      return try await bench.push(size, to: server.url, column, speed + limits) {
        try await until("the server has a part of it") { server.received() >= 1 << 20 ? true : nil }
        try await interrupt(bench)
      }
    }
  }

  private static let elsewhere =
    "HTTP/1.1 307 There\r\nLocation: http://elsewhere.example/in/\r\nContent-Length: 0\r\n\r\n"
  private static let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>Welcome!"
  private static let doubled = "HTTP/1.1 500 No\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
  private static let soon = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
  private static let half = "HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\nhalf"
}
