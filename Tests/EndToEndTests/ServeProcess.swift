import Foundation

/// `fullbore serve` on a port of its own choice, which it keeps when it is started again.
final class ServeProcess: Sendable {
  let folder: Folder
  let command: Command
  /// With a slash at its end.
  let url: String

  private init(_ folder: Folder, _ command: Command, _ url: String) {
    self.folder = folder
    self.command = command
    self.url = url
  }

  /// Returns once it listens. The folder is `received` in `scratch`.
  static func start(
    in scratch: Scratch, address: String = "127.0.0.1", port: Int = 0, _ options: String...,
    environment: [String: String] = [:]
  ) async throws -> ServeProcess {
    let folder = try scratch.folder("received")
    let command = try Command(
      Tool.fullbore, ["serve", folder, "--listen", "\(address):\(port)"] + options, in: scratch,
      environment: environment)
    let url = try await until("the server prints its URL") {
      if let end = command.end { throw Command.Failure("the server ended: \(end) \(command.output)\(command.errors)") }
      return firstURL(in: command.output)
    }
    return ServeProcess(Folder(folder), command, url)
  }

  /// The same folder and port again, after this one was killed.
  func startAgain(in scratch: Scratch) async throws -> ServeProcess {
    try await ServeProcess.start(in: scratch, port: port)
  }

  var port: Int { URL(string: url)?.port ?? 0 }

  /// From the first line, once it is whole.
  private static func firstURL(in output: String) -> String? {
    guard let end = output.firstIndex(of: "\n") else { return nil }
    let words = output[..<end].split(whereSeparator: \.isWhitespace)
    guard let url = words.first(where: { $0.hasPrefix("http") }) else { return nil }
    return url.hasSuffix("/") ? String(url) : url + "/"
  }
}
