import Foundation

/// `fullbore serve` on a free port, which it uses again after a restart.
final class ServeProcess: Sendable {
  let folder: Folder
  let command: Command
  /// Ends with a slash.
  let url: String

  private init(_ folder: Folder, _ command: Command, _ url: String) {
    self.folder = folder
    self.command = command
    self.url = url
  }

  /// Returns once the server listens. Its folder is `received` in `scratch`.
  static func start(
    in scratch: Scratch, address: String = "127.0.0.1", port: Int = 0, _ options: String...,
    environment: [String: String] = [:]
  ) async throws -> ServeProcess {
    try await start(in: scratch, address: address, port: port, options: options, environment: environment)
  }

  static func start(
    in scratch: Scratch, address: String = "127.0.0.1", port: Int = 0, place: [String]? = nil, options: [String],
    environment: [String: String] = [:]
  ) async throws -> ServeProcess {
    let folder = try scratch.folder("received")
    let command = try Command(
      Tool.fullbore, ["serve"] + (place ?? [folder]) + ["--listen", "\(address):\(port)"] + options, in: scratch,
      environment: environment)
    let url = try await until("the server prints its URL") {
      if let end = command.end { throw Command.Failure("the server ended: \(end) \(command.output)\(command.errors)") }
      return firstURL(in: command.output)
    }
    return ServeProcess(Folder(folder), command, url)
  }

  /// Starts a server with the same folder and port, after this one was killed.
  func startAgain(in scratch: Scratch) async throws -> ServeProcess {
    try await ServeProcess.start(in: scratch, port: port)
  }

  var port: Int { URL(string: url)?.port ?? 0 }

  /// Reads the URL from the first line; nil until the line is complete.
  private static func firstURL(in output: String) -> String? {
    guard let end = output.firstIndex(of: "\n") else { return nil }
    let words = output[..<end].split(whereSeparator: \.isWhitespace)
    guard let url = words.first(where: { $0.hasPrefix("http") }) else { return nil }
    return url.hasSuffix("/") ? String(url) : url + "/"
  }
}
