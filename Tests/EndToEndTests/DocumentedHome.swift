import BlobTesting
import BlobUpload
import Blobs
import Foundation
import TestSupport
import Testing

/// The computer of the documentation: the home of a user with a card, a NAS, and storage of others, all of it on this
/// machine. Commands of the documentation run here, with names and addresses of the test in place of their own.
final class DocumentedHome {
  let scratch: Scratch
  let bucket: S3Peer
  let cloud: NextcloudPeer
  let google = CloudPeer()
  /// The port of the NAS.
  let port: Int
  /// The key that opens what is sealed for `recipient`.
  private let key: (file: String, recipient: String)
  /// Servers and watches, which run until `stop`.
  private(set) var running: [Command] = []
  /// The URL of the other server, at nas.example; empty: it does not run.
  private var example = ""

  /// `places`: those that the user has already.
  init(places: Set<String> = ["nas", "cloud"]) async throws {
    scratch = try Scratch()
    port = try freePort()
    var options = S3Peer.Options()
    options.bucket = "my-bucket"
    bucket = S3Peer(options)
    cloud = NextcloudPeer { request in
      request.headers["Authorization"] == "Basic " + Data("anna:app".utf8).base64EncodedString() ? nil : .init(401)
    }
    key = try await scratch.makeAgeKey("key")
    try makeFiles()
    let settings = [
      "nas": """
      [places.nas]
      url = "http://127.0.0.1:\(port)/"
      token-file = "\(path)/token"

      """,
      "cloud": """
      [places.cloud]
      url = "dav+\(cloud.endpoint)"
      user = "anna"
      password-command = "echo app"

      """,
    ]
    let chosen = settings.filter { places.contains($0.key) }
    try write(".config/fullbore/config.toml", chosen.values.joined(separator: "\n"))
  }

  var path: String { scratch.path("home") }

  private func makeFiles() throws {
    for number in 1...7 { try scratch.file("home/DCIM/100CANON/IMG_000\(number).JPG", 20_000 + number) }
    for folder in ["media/card", "media/disk"] {
      try scratch.folder("home/" + folder)
      try FileManager.default.copyItem(atPath: path + "/DCIM", toPath: "\(path)/\(folder)/DCIM")
    }
    for name in ["film.mov", "video.mov", "Pictures/a.jpg", "Pictures/tethered/b.jpg", "card/c.jpg", "photos/d.jpg"] {
      try scratch.file("home/\(name)", 10_000)
    }
    try scratch.file("home/card/DCIM/e.jpg", 1000)
    try scratch.file("home/albums/f.jpg", 1000)
    for name in ["nas/photos", "nas.example/in", "programs", "Pictures/from-phones", "Pictures/in"] {
      try scratch.folder("home/\(name)")
    }
    try write("token", "secret-of-both\n")
    try write("key.txt", try String(contentsOfFile: key.file, encoding: .utf8))
    let machines = ["127.0.0.1", "cloud.example"]
    try write(".netrc", machines.map { "machine \($0) login anna password app\n" }.joined())
    try FileManager.default.createSymbolicLink(
      atPath: path + "/programs/fullbore", withDestinationPath: Tool.fullbore)
  }

  /// Writes a file that only the user may read.
  private func write(_ name: String, _ text: String) throws {
    let file = try scratch.file("home/\(name)", 0)
    try text.write(toFile: file, atomically: false, encoding: .utf8)
    chmod(file, 0o600)
  }

  /// Starts the servers that a page has, and does not start itself.
  func startServers(for lines: [String]) async throws {
    let text = lines.joined(separator: "\n")
    if text.contains("cert.pem") {
      let certificate = try await TestCertificate.selfSigned(for: "IP:127.0.0.1", in: scratch)
      try FileManager.default.copyItem(atPath: certificate.path, toPath: path + "/cert.pem")
      try FileManager.default.copyItem(atPath: certificate.key, toPath: path + "/key.pem")
    }
    if text.contains("nas"), !text.contains("--listen :8080") {
      let token = text.contains("token") ? " --token-file token" : ""
      _ = try await run("fullbore serve nas --listen 127.0.0.1:\(port)\(token)")
    }
    if text.contains("nas.example") {
      let server = try await run("fullbore serve nas.example --listen 127.0.0.1:0")
      example = server.output.split(separator: "\n").first.map(String.init) ?? ""
    }
  }

  /// The text of a page with the files of this home in place of those of the page, and with a word where the page leaves
  /// one out. `withAddresses`: also with the addresses of its servers, as a command needs that runs.
  func replaced(_ text: some StringProtocol, withAddresses: Bool = true) -> String {
    let nas = "http://127.0.0.1:\(port)/"
    let words = [
      // Words that stand for another one.
      ("http://…", nas), ("age1…", key.recipient), ("COMMAND", "push"), ("NAME URL [options]", "name \(nas)"),
      ("remove NAME", "remove name"), ("doctor URL", "doctor \(nas)"), ("SOURCE FOLDER", "nas: restored"),
      ("FOLDER", "card"),
      ("age1h7zun33g5auvazuzl7f6j3c4q69k4ngxh3nycvwhpt37s4nytfhqyh0wkz", key.recipient),
      ("%h/", "~/"), ("~/", path + "/"), ("/media/card/", path + "/media/card/"),
      ("/media/disk/", path + "/media/disk/"), ("/srv/photos", path + "/nas"), ("/mnt/nas/", path + "/nas/"),
      // A list is named by the time at which it was made.
      ("ascmhl/0001_DCIM_2026-11-28_023809Z.mhl", "ascmhl/0001_DCIM_*Z.mhl"),
      ("delivered.mhl", path + "/nas/day1/DCIM/ascmhl/0001_DCIM_*Z.mhl"),
    ]
    let addresses = [
      ("--listen :8080", "--listen 127.0.0.1:\(port)"), ("0.0.0.0:8443", "127.0.0.1:0"),
      ("--share", "--share --listen 127.0.0.1:0"), ("nas:8080", "127.0.0.1:\(port)"),
      ("https://nas.example/", example.isEmpty ? nas : example),
      ("https://objects.example:9000", "http://127.0.0.1:\(bucket.port)"), ("s3://media/", "s3://my-bucket/"),
      ("https://cloud.example/remote.php/dav/files/anna/", cloud.endpoint.description),
      ("gs://my-bucket/", "gcs+http://127.0.0.1:\(google.endpoint.port)/media/"),
      ("http://127.0.0.1:9023/", "http://127.0.0.1:\(google.endpoint.port)/"),
    ]
    return (withAddresses ? words + addresses : words).reduce(String(text)) {
      $0.replacingOccurrences(of: $1.0, with: $1.1)
    }
  }

  /// Runs a line of a page. A server and a watch go on until `stop`, once they have said that they run.
  func run(_ line: some StringProtocol) async throws -> Command {
    let text = replaced(line)
    let goesOn = text.contains("fullbore serve") || text.contains("fullbore watch")
    let command = try shell(goesOn ? text.replacingOccurrences(of: "fullbore ", with: "exec fullbore ") : text)
    if !goesOn {
      try await command.wait()
      return command
    }
    running.append(command)
    try await until("\(text) says something") {
      if let end = command.end { throw Command.Failure("\(text): \(end) \(command.output)\(command.errors)") }
      return command.output.isEmpty ? nil : true
    }
    return command
  }

  /// Lets the program read the arguments of a command, and do nothing.
  func read(_ words: [String]) throws -> Command {
    try shell("exec fullbore \"$@\"", [words[0], "--read-arguments-only"] + words.dropFirst())
  }

  /// Ends servers and watches as Ctrl-C does.
  func stop() async throws {
    for command in running.reversed() {
      command.kill(SIGINT)
      let wanted: Int32 = command.name.contains("fullbore watch") ? 130 : 0
      #expect(try await command.wait() == .exited(wanted), "\(command.name)\n\(command.output)\(command.errors)")
    }
    running = []
  }

  /// Runs a line of a shell in the home, where `fullbore` is the program under test.
  func shell(_ line: String, _ arguments: [String] = []) throws -> Command {
    try Command(
      "sh", ["-c", "cd \"$HOME\"; \(line)", "sh"] + arguments, in: scratch, environment: environment)
  }

  var environment: [String: String] {
    let own = [
      "HOME": path, "PATH": "\(path)/programs:\(ProcessInfo.processInfo.environment["PATH"] ?? "")",
      "XDG_CONFIG_HOME": "\(path)/.config", "XDG_STATE_HOME": "\(path)/.state",
      "AWS_ENDPOINT_URL": "http://127.0.0.1:\(bucket.port)",
    ]
    return S3Peer.environment.merging(own) { $1 }
  }
}
