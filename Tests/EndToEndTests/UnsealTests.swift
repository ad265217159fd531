import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore unseal` of what `push --seal` has sent, with the real binary.
  @Suite(.serialized, .enabled(if: Peer.age.isThereOrWanted)) struct UnsealTests {
    let scratch = try! Scratch()
    var restored: String { scratch.path("restored") }

    /// A new key of age: the file with the private one, and the public one.
    func makeKey(_ name: String = "key") async throws -> (file: String, recipient: String) {
      try await scratch.makeAgeKey(name)
    }

    func run(_ arguments: [String], _ environment: [String: String] = S3Peer.environment) async throws -> (
      end: Command.End, command: Command
    ) {
      let command = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
      return (try await command.wait(), command)
    }

    func unseal(_ arguments: String...) async throws -> (end: Command.End, command: Command) {
      try await run(["unseal"] + arguments)
    }

    /// A tree with names that are special in URLs and XML, and the sizes at which chunks end.
    func makeTree() throws -> String {
      for (number, size) in [0, 1, 65_535, 65_536, 65_537, 131_072, 700_000].enumerated() {
        try scratch.file("card/A/\(size).mov", size, seed: UInt64(number))
      }
      try scratch.file("card/A/B & C/ä 100%+#.jpg", 5000)
      try scratch.file("card/top.jpg", 70_000)
      return scratch.path("card")
    }

    /// The events of a run with `--json`, held against the published schema.
    func events(_ command: Command) throws -> [[String: Any]] {
      let schema = try EventSchema(of: "unseal")
      return try command.output.split(separator: "\n").map { line in
        let event = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        #expect(schema.fault(in: event) == nil, "\(event)")
        return event
      }
    }

    func time(_ path: String) -> Int {
      Int(
        ((try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date)?
          .timeIntervalSince1970 ?? 0)
    }

    func expectRestored(_ tree: String, sourceLocation: SourceLocation = #_sourceLocation) {
      Folder(tree).expectSame(as: Folder(restored), sourceLocation: sourceLocation)
      for name in Folder(tree).files().keys {
        #expect(
          time("\(restored)/\(name)") == time("\(tree)/\(name)"), "the time of \(name)", sourceLocation: sourceLocation)
      }
      #expect(!FileManager.default.fileExists(atPath: restored + "/.fullbore-unseal"), sourceLocation: sourceLocation)
    }

    enum Kind: String, CaseIterable { case folder, server, place, s3, rclone, apache }

    @Test(arguments: Kind.allCases) func aTreeIsRestoredWithItsTimes(_ kind: Kind) async throws {
      if let dav = DavServer(rawValue: kind.rawValue), !dav.peer.isThereOrWanted { return }
      let key = try await makeKey()
      let tree = try makeTree()
      var (source, options) = ("", [String]())
      var environment = S3Peer.environment
      var settings = S3Peer.Options()
      settings.page = 3
      let s3 = S3Peer(settings)
      var running: [AnyObject] = []
      switch kind {
      case .folder, .server, .place:
        let server = try await ServeProcess.start(in: scratch)
        running = [server]
        let end = try await run(["push", "--seal", key.recipient, tree + "/", server.url + "in/"]).end
        #expect(end == .exited(0))
        source = kind == .server ? server.url + "in/" : kind == .place ? "nas:in/" : server.folder.path + "/in"
        environment["XDG_CONFIG_HOME"] = scratch.path("config")
        try scratch.folder("config/fullbore")
        try "[places.nas]\nurl = \"\(server.url)\"\n".write(
          toFile: scratch.path("config/fullbore/config.toml"), atomically: true, encoding: .utf8)
      case .s3:
        (source, options) = ("s3://media/in/", ["--endpoint", "http://127.0.0.1:\(s3.port)"])
      case .rclone, .apache:
        let server = try await #require(DavServer(rawValue: kind.rawValue)).start(
          into: try scratch.folder("dav"), in: scratch)
        running = [server]
        source = "dav+\(server.url)"
      }
      if ![.folder, .server, .place].contains(kind) {
        let (end, push) = try await run(["push", "--seal", key.recipient, tree + "/", source] + options)
        #expect(end == .exited(0), "\(push.output)\(push.errors)")
      }
      let arguments = ["unseal", source, restored, "-i", key.file] + options
      let (end, first) = try await run(arguments, environment)
      #expect(end == .exited(0), "\(first.output)\(first.errors)")
      // A WebDAV server has the times that it lets clients set.
      if [.rclone, .apache].contains(kind) {
        Folder(tree).expectSame(as: Folder(restored))
      } else {
        expectRestored(tree)
      }
      let (again, second) = try await run(arguments, environment)
      #expect(again == .exited(0) && second.output.contains("9 there already"), "\(second.output)\(second.errors)")
      _ = running
    }

    @Test func oneFileIsRestored() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 300_000)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await run(["push", "--seal", key.recipient, film, server.url]).end == .exited(0))
      for (number, source) in ["\(server.url)film.mov.age", "\(server.folder.path)/film.mov.age"].enumerated() {
        let (end, command) = try await unseal(source, "\(restored)\(number)/deep", "-i", key.file)
        #expect(end == .exited(0), "\(command.output)\(command.errors)")
        #expect(FileManager.default.contentsEqual(atPath: "\(restored)\(number)/deep/film.mov", andPath: film))
      }
    }

    /// Two versions are never mixed.
    @Test func aFileThatWasReplacedMeanwhileStartsAnew() async throws {
      let key = try await makeKey()
      try scratch.file("card/film.mov", 32 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = ["push", "--seal", key.recipient, scratch.path("card/film.mov"), server.url]
      #expect(try await run(push).end == .exited(0))
      let arguments = ["unseal", server.url, restored, "-i", key.file]
      let killed = try Command(Tool.fullbore, arguments, in: scratch)
      try await until("something is written") { Folder(restored).unsealing() > 1 << 20 ? true : nil }
      killed.kill(SIGKILL)
      #expect(try await killed.wait() == .killed(by: SIGKILL))
      try scratch.file("card/film.mov", 32 << 20, seed: 99)
      #expect(try await run(push + ["--overwrite"]).end == .exited(0))
      let (end, last) = try await run(arguments)
      #expect(end == .exited(0), "\(last.output)\(last.errors)")
      #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: scratch.path("card/film.mov")))
      #expect(!FileManager.default.fileExists(atPath: restored + "/.fullbore-unseal"))
    }

    /// What is restored is not read again by a run that goes on.
    @Test func restoredFilesAreNotReadAgain() async throws {
      let key = try await makeKey()
      for number in 0..<5 { try scratch.file("card/\(number).jpg", 1_000_000, seed: UInt64(number)) }
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("received/plain.jpg", 10)
      #expect(
        try await run(["push", "--seal", key.recipient, scratch.path("card") + "/", server.url]).end == .exited(0))
      let arguments = ["unseal", server.url, restored, "-i", key.file, "--json"]
      let (end, first) = try await run(arguments)
      #expect(end == .exited(1) && first.output.contains("\"restored\":5"), "\(first.output)\(first.errors)")
      let (again, second) = try await run(arguments)
      #expect(again == .exited(1) && second.output.contains("\"there\":5"), "\(second.output)\(second.errors)")
      #expect(second.output.contains("\"bytes\":0,"), "\(second.output)")
      let seen = Set(try (events(first) + events(second)).compactMap { $0["event"] as? String })
      #expect(seen == ["done", "failed", "summary"])
    }
  }
}

extension Folder {
  /// Bytes in files that `unseal` has not published.
  func unsealing() -> Int {
    let folder = path + "/.fullbore-unseal"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".part") }.reduce(0) { sum, name in
      sum + (((try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)"))?[.size] as? Int) ?? 0)
    }
  }

  /// The names of the files that `unseal` has published.
  func restored() -> [String] { files().keys.filter { !$0.hasPrefix(".fullbore-unseal/") }.sorted() }
}

extension Scratch {
  /// A new key of age: the file with the private one, and the public one.
  func makeAgeKey(_ name: String) async throws -> (file: String, recipient: String) {
    let file = path(name)
    let keygen = try #require(Tool.find("age-keygen"), Peer.age.reason)
    #expect(try await Command(keygen, ["-o", file], in: self).wait() == .exited(0))
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("# public key: ") })
    return (file, String(line.dropFirst("# public key: ".count)))
  }
}
