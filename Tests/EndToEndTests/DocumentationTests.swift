import BlobUpload
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// The commands in the documentation, taken from its text.
  @Suite(.serialized) struct DocumentationTests {
    let scratch = try! Scratch()

    /// The program reads the options of each command and prints its help, because that was asked for as well.
    @Test(arguments: DocumentedPage.all) func theProgramTakesEveryCommand(_ page: DocumentedPage) async throws {
      for words in try page.commands() {
        // Words in capitals stand for something else.
        guard let command = words.first, command.first?.isUppercase == false, !command.hasPrefix("…") else { continue }
        let help = try Command(Tool.fullbore, [command, "--help"] + words.dropFirst(), in: scratch)
        #expect(try await help.wait() == .exited(0), "\(page.name): fullbore \(words)\n\(help.errors)")
      }
    }

    /// Scripts and programs of this repository that a block names are there.
    @Test(arguments: DocumentedPage.all) func theNamedScriptsExist(_ page: DocumentedPage) throws {
      for block in try page.blocks() where block.language == "sh" {
        for line in block.lines {
          let command = line.prefix { $0 != "#" }
          for word in command.split(whereSeparator: { " $()=".contains($0) })
          where word.contains(/^(scripts|Tests|docs|Packaging)\//) {
            #expect(
              FileManager.default.fileExists(atPath: Tool.checkout.appendingPathComponent(String(word)).path),
              "\(page.name): \(line)")
          }
        }
      }
    }

    /// A dry run reads the values of all options too, and lists the files.
    @Test(arguments: DocumentedPage.all) func aDryRunTakesEveryPush(_ page: DocumentedPage) async throws {
      try makeHome(places: "[places.nas]\nurl = \"http://nas/\"\n[places.cloud]\nurl = \"http://cloud/\"\n")
      let places = [("%h/", "~/"), ("~/", home + "/"), ("/media/card/", home + "/media/card/")]
      for words in try page.commands() where ["push", "watch"].contains(words[0]) && words.count > 2 {
        let words = words.map { word in places.reduce(word) { $0.replacingOccurrences(of: $1.0, with: $1.1) } }
        // The test cannot run a command from which the page leaves out a word.
        if words.contains(where: { $0.contains("…") || $0 == "URL" || $0 == "FOLDER" }) { continue }
        let run = try shell("exec fullbore \"$@\"", [words[0], "--dry-run"] + words.dropFirst())
        #expect(try await run.wait() == .exited(0), "\(page.name): fullbore \(words)\n\(run.errors)")
      }
    }

    /// The blocks of the README run in order; servers of this test stand for those that they name.
    @Test func theRecipesOfTheReadmeRun() async throws {
      try makeHome()
      let port = try freePort()
      var options = S3Peer.Options()
      options.bucket = "my-bucket"
      let bucket = S3Peer(options)
      // User and password must come from ~/.netrc.
      let cloud = NextcloudPeer { request in
        request.headers["Authorization"] == "Basic " + Data("anna:app".utf8).base64EncodedString() ? nil : .init(401)
      }
      let replacements = [
        ("/media/card/", home + "/media/card/"), ("/srv/photos", home + "/received"),
        ("--listen :8080", "--listen 127.0.0.1:\(port)"), ("nas:8080", "127.0.0.1:\(port)"),
        ("https://objects.example:9000", "http://127.0.0.1:\(bucket.port)"),
        ("https://cloud.example/remote.php/dav/files/anna/", cloud.endpoint.description),
        ("--share", "--share --listen 127.0.0.1:0"), ("fullbore serve", "exec fullbore serve"),
      ]
      let gallery = Folder(home + "/DCIM")
      let sent = Set(gallery.files().keys.map { "2026/" + $0 })
      var servers: [Command] = []
      var last: Command?
      var count = 0
      for block in try DocumentedPage(name: "README.md").blocks(below: "Five recipes") where block.language == "sh" {
        for line in block.lines {
          if line.hasPrefix("# ") {
            // What the command before has printed, but for numbers.
            let printed = try #require(last?.output.split(separator: "\n").last)
            #expect(withoutNumbers(printed) == withoutNumbers(line.dropFirst(2)))
            continue
          }
          count += 1
          let text = replacements.reduce(String(line)) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
          let amazon = ["AWS_ENDPOINT_URL": "http://127.0.0.1:\(bucket.port)"]
          let command = try shell(text, [], environment: S3Peer.environment.merging(amazon) { $1 })
          last = command
          if line.contains("fullbore serve") {
            servers.append(command)
            try await until("\(line) prints its URL") {
              if let end = command.end { throw Command.Failure("\(line): \(end) \(command.output)\(command.errors)") }
              return command.output.contains("http://127.0.0.1:") ? true : nil
            }
          } else {
            #expect(try await command.wait() == .exited(0), "\(text)\n\(command.output)\(command.errors)")
          }
        }
      }
      #expect(count >= 9 && servers.count == 2)
      gallery.expectSame(as: Folder(home + "/received/2026"))
      #expect(Set(bucket.objects.keys) == sent)
      #expect(Set(cloud.names().map(\.description)).isSuperset(of: sent))
      for name in gallery.files().keys {
        let bytes = FileManager.default.contents(atPath: "\(gallery.path)/\(name)")
        #expect(bucket.objects["2026/\(name)"].map { Data($0.bytes) } == bytes, "\(name)")
      }
      for server in servers {
        server.kill(SIGINT)
        #expect(try await server.wait() == .exited(0), "\(server.output)\(server.errors)")
      }
    }

    /// The home of the user of the documentation.
    private var home: String { scratch.path("home") }

    /// `places`: the user's settings.
    private func makeHome(places: String = "") throws {
      for number in 1...7 { try scratch.file("home/DCIM/100CANON/IMG_000\(number).JPG", 20_000 + number) }
      try scratch.folder("home/media/card")
      try FileManager.default.copyItem(atPath: home + "/DCIM", toPath: home + "/media/card/DCIM")
      for name in ["film.mov", "video.mov", "Pictures/a.jpg", "Pictures/tethered/b.jpg", "card/c.jpg", "photos/d.jpg"] {
        try scratch.file("home/\(name)", 10_000)
      }
      for name in ["received", "programs", "card/DCIM"] { try scratch.folder("home/\(name)") }
      try scratch.file("home/card/DCIM/e.jpg", 1000)
      for (name, text) in [
        ("token", "secret\n"), (".netrc", "machine 127.0.0.1 login anna password app\n"),
        (".config/fullbore/config.toml", places),
      ] {
        let file = try scratch.file("home/\(name)", 0)
        try text.write(toFile: file, atomically: false, encoding: .utf8)
        chmod(file, 0o600)
      }
      try FileManager.default.createSymbolicLink(
        atPath: home + "/programs/fullbore", withDestinationPath: Tool.fullbore)
    }

    /// Runs a line of a shell in the home, where `fullbore` is the program under test.
    private func shell(
      _ line: String, _ arguments: [String], environment: [String: String] = S3Peer.environment
    ) throws -> Command {
      let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
      let variables = [
        "HOME": home, "PATH": "\(home)/programs:\(path)", "XDG_CONFIG_HOME": "\(home)/.config",
        "XDG_STATE_HOME": "\(home)/.state",
      ]
      return try Command(
        "sh", ["-c", "cd \"$HOME\"; \(line)", "sh"] + arguments, in: scratch,
        environment: environment.merging(variables) { $1 })
    }

    private func withoutNumbers(_ text: Substring) -> String {
      String(text).replacing(/[0-9]+([.,][0-9]+)*/, with: "N").replacing(/\ \(N [KM]?i?B\/s\)/, with: "")
    }
  }
}
