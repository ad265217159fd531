import Foundation
import Testing

/// `fullbore watch` of the folder `gallery` in a scratch folder, with a server as destination.
final class WatchProcess: Sendable {
  /// The time that a file must rest: long enough for a busy machine to write a file, and short enough for tests.
  static let settle = "400ms"

  let command: Command
  private let scratch: Scratch

  private init(_ command: Command, _ scratch: Scratch) {
    self.command = command
    self.scratch = scratch
  }

  /// Returns once the watch has read all existing files.
  static func start(to url: String, in scratch: Scratch, _ options: String...) async throws -> WatchProcess {
    let watch = try startBlind(to: url, in: scratch, options)
    try await watch.until("it watches") { watch.command.errors.contains("watching ") ? true : nil }
    return watch
  }

  /// Returns at once.
  static func startBlind(
    to url: String, in scratch: Scratch, settle: String = settle, _ options: [String]
  ) throws -> WatchProcess {
    let command = try Command(
      Tool.fullbore, ["watch", "--verbose", "--settle", settle] + options + [scratch.path("gallery/"), url],
      in: scratch)
    return WatchProcess(command, scratch)
  }

  /// As `startBlind`, with a kernel limit on the number of watched folders.
  static func startLimited(
    to url: String, in scratch: Scratch, watches: Int, _ options: String...
  ) throws -> WatchProcess {
    let words = [Tool.fullbore, "watch", "--verbose", "--settle", settle] + options + [scratch.path("gallery/"), url]
    let shell = ["-Ur", "sh", "-c", limiting, "sh", "\(watches)"] + words
    return WatchProcess(try Command("unshare", shell, in: scratch), scratch)
  }

  /// Returns at once. The watch runs as another user than the writer of the files; its journal is in the folder
  /// `state`.
  static func start(asUser user: Int, to url: String, in scratch: Scratch) throws -> WatchProcess {
    let words = [Tool.fullbore, "watch", "--verbose", "--settle", settle, scratch.path("gallery/"), url]
    let change = ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
    let journal = ["FULLBORE_JOURNAL": scratch.path("state/journal.sqlite")]
    return WatchProcess(try Command("setpriv", change + words, in: scratch, environment: journal), scratch)
  }

  private static let limiting = "echo $1 > /proc/sys/user/max_inotify_watches && shift && exec \"$@\""

  static let canLimit: Bool = {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["unshare", "-Ur", "sh", "-c", limiting, "sh", "3", "true"]
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()

  /// Waits until `server` has the same file names as the gallery and the watch has recorded that; expects that the
  /// files have the same bytes.
  func expectSame(at server: Folder, _ limit: Duration = .seconds(60)) async throws {
    let gallery = Folder(scratch.path("gallery"))
    try await until("the gallery has arrived", limit) { gallery.files() == server.files() ? true : nil }
    try await until("the answers have arrived", limit) {
      let told = Set(command.output.split(separator: "\n").map { $0.prefix { $0 != " " } })
      return gallery.files().keys.allSatisfy { told.contains($0.prefix { $0 != " " }) } ? true : nil
    }
    gallery.expectSame(as: server)
  }

  /// As `until`, but also ends when the watch ends, and reports its messages on failure.
  @discardableResult
  func until<Value>(
    _ what: String, _ limit: Duration = .seconds(60), isolation: isolated (any Actor)? = #isolation,
    _ ask: () throws -> Value?
  ) async throws -> Value {
    do {
      return try await EndToEndTests.until(what, limit) {
        if let end = command.end { throw Command.Failure("the watch ended: \(end)") }
        return try ask()
      }
    } catch {
      throw Command.Failure("\(error)\n\(command.output)\(command.errors)")
    }
  }

  func stop(_ signal: Int32 = SIGTERM) async throws -> Command.End {
    command.kill(signal)
    return try await command.wait()
  }
}
