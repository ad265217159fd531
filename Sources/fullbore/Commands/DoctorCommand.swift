import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Finds out what is wrong between this machine and a server.
struct DoctorCommand: Command {
  static let declaration = CommandDeclaration(
    name: "doctor", synopsis: "doctor URL|PLACE:",
    summary: "find what is wrong between here and a server, and how to mend it",
    options: [
      .flag("yes", short: "y", "write a test file there and remove it, without asking"),
      .flag("json", "one JSON object a line: check, finding, summary"),
    ] + ConnectionOptions.declaredForServers
      + [
        .value("largest", "SIZE", "the largest body to announce, like 4G; 100G when not given"),
        .value("pause", "DURATION", "for how long a body pauses, like 1m; 10s when not given"),
        .value("origin", "ORIGIN", "also say what a page of this origin misses, like https://app.example"),
      ].inGroup(.checks),
    examples: [
      .init("doctor https://nas.example/in/", "asks before it writes a test file"),
      .init(
        "doctor --yes --pause 90s dav+https://cloud.example/dav/", "WebDAV, with a body that pauses for 90 seconds"),
      .init("doctor nas:", "the server of a place, with its credentials and options"),
      .init("doctor --yes --json --token-file ~/.token https://nas.example/in/", "for a program"),
    ],
    notes: """
      It looks at the name and its addresses, the certificate, the protocols and their limits, the largest body that passes,
      whether a proxy holds requests back, refuses methods, drops interim responses or ends bodies that pause, the URLs that
      the server gives to uploads, and CORS. Each finding has its consequence and lines for nginx, Apache, Caddy or haproxy.
      URL is that of a push, or a place. Without --yes, and if nobody answers the question, nothing is written there.
      Exit status: 0 nothing is wrong, 1 something is, 2 wrong usage, 3 no server was reached.
      """, takesPlaces: true)

  let destination: Destination
  let connection: ConnectionOptions
  let settings: DoctorOptions

  init(_ arguments: Arguments) throws(UsageError) {
    guard arguments.operands.count == 1 else { throw UsageError("which server? One URL, or one place, is wanted") }
    let arguments = try arguments.withPlace()
    connection = try ConnectionOptions(arguments, namesBuckets: false)
    let given = arguments.operands[0]
    let refusal = UsageError(
      "'\(shown(given.withoutSecrets))': wanted an http:// or https:// URL of a server, or a place, like nas:")
    if given.hasScheme("s3") || given.bytes.firstRange(of: Array("://".utf8)) == nil { throw refusal }
    destination = try Destination(given)
    if destination.s3 != nil || destination.traits?.namesBuckets == true { throw refusal }
    var settings = DoctorOptions()
    settings.isJSON = arguments.flag("json")
    if arguments.flag("yes") { settings.mayWrite = true }
    settings.largest =
      try arguments.parsed("largest", wanted: "a size of at least 1K, like 4G") { text in
        Quantity.size(text).flatMap { $0 >= 1024 ? $0 : nil }
      } ?? settings.largest
    settings.pause =
      try arguments.parsed("pause", wanted: "a duration from 1s to 1h") { text in
        Quantity.duration(text).flatMap { .seconds(1) ... .seconds(3600) ~= $0 ? $0 : nil }
      } ?? settings.pause
    settings.origin = try arguments.parsed("origin", wanted: "an origin, like https://app.example") { text in
      HTTPURL(text).flatMap { $0.path == "/" && $0.query == nil || $0.path.isEmpty ? text : nil }
    }
    self.settings = settings
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    let report = DoctorReport(isJSON: settings.isJSON)
    let status = await interruptible { await examine(report) }
    report.end(status, Self.summary(status, report.findings.count))
    return status
  }

  private func examine(_ report: DoctorReport) async -> ExitStatus {
    do throws(UploadError) {
      let target = try await DoctorTarget(destination, connection, report)
      return await Examination(target: target, settings: settings) { await mayWrite(target) }.run()
    } catch {
      report.note("options", error.message)
      return .usage
    }
  }

  private static func summary(_ status: ExitStatus, _ findings: Int) -> String {
    switch status {
    case .ok: "Nothing wrong was found."
    case .unreachable: "No server was reached."
    case .interrupted: "Interrupted, after \(Quantity.plural(findings, "finding"))."
    case .failed, .usage: "\(Quantity.plural(findings, "finding"))."
    }
  }

  /// Asks on a terminal.
  private func mayWrite(_ target: DoctorTarget) async -> Bool {
    if let given = settings.mayWrite { return given }
    guard !settings.isJSON, let prompt = Prompt() else { return false }
    let answer = await result(within: .seconds(600)) {
      prompt.ask("Write a test file to \(target.endpoint), and remove it at the end? [y/N] ")
    }
    return (answer ?? nil)?.lowercased().hasPrefix("y") == true
  }
}
