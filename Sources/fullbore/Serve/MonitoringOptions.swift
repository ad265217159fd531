import BlobHTTP
import BlobServer
import Blobs
import Platform

/// The options of `serve` for those who run it: what it logs, and what it tells of received files.
struct MonitoringOptions: Sendable {
  /// `-` is standard output; nil: there is no log.
  let log: BytePath?
  let format: LogFormat
  let command: UploadCommand?
  let url: HTTPURL?

  static let declared: [OptionDeclaration] = [
    .value("log", "FILE", "write a line for each request; - is standard output; SIGHUP opens FILE again"),
    .value("log-format", "common|json", "common is as web servers write it, and so when not given"),
    .value(
      "metrics", "ADDRESS:PORT", "an address of this machine for /metrics, without the token, like 127.0.0.1:9100"),
    .value("on-upload", "COMMAND", "a program to run for each file, with its path as the argument, without a shell"),
    .value("notify", "URL", "POST an object of JSON there for each file, again if that fails"),
  ].inGroup(.monitoring)

  /// Sets the options that belong to the server itself.
  init(_ arguments: Arguments, _ options: inout ServerOptions) throws(UsageError) {
    log = arguments.value("log")
    if let log, log != "-" { try Self.check(log, outside: options.folder) }
    if log == nil, arguments.value("log-format") != nil { throw UsageError("--log-format belongs to --log") }
    format = try arguments.parsed("log-format", wanted: "common or json") { LogFormat(rawValue: $0) } ?? .common
    let metrics = try arguments.parsed("metrics", wanted: "ADDRESS:PORT, like 127.0.0.1:9100") { ListenAddress($0) }
    if let metrics, !metrics.isLoopback {
      throw UsageError(
        "--metrics \(metrics.address):\(metrics.port) can be reached from other machines, and asks for no token: give an "
          + "address like 127.0.0.1:9100, or none, and let them read /metrics of the server with the token")
    }
    options.metrics = metrics.map { ($0.address, $0.port) }
    command = if let path = arguments.value("on-upload") { try UploadCommand(path, option: "on-upload") } else { nil }
    if options.isReadOnly, command != nil || arguments.value("notify") != nil {
      throw UsageError("--on-upload and --notify with --read-only: no file would ever be received")
    }
    url = try arguments.parsed("notify", wanted: "a URL like https://host/path, without a user's name") { text in
      // The transport would not send the name and the password.
      let authority = text.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true).dropFirst().first ?? ""
      return authority.contains("@") ? nil : HTTPURL(text)
    }
  }

  /// Clients could read or replace a log in the served folder.
  private static func check(_ log: BytePath, outside folder: BytePath) throws(UsageError) {
    let whole = log.absolute()
    let parent = BytePath(whole.bytes.prefix(whole.bytes.lastIndex(of: UInt8(ascii: "/"))! + 1))
    guard let realParent = parent.resolved() else {
      throw UsageError("--log \(shown(log)): \(String(cString: strerror(errno)))")
    }
    let inside = folder.bytes.last == UInt8(ascii: "/") ? folder.bytes : folder.bytes + [UInt8(ascii: "/")]
    // The log itself may be a symbolic link.
    for place in [realParent, whole.resolved()] {
      if let place, (place.bytes + [UInt8(ascii: "/")]).starts(with: inside) {
        throw UsageError("--log \(shown(log)): this is in the served folder, where clients can read it")
      }
    }
  }
}
