import BlobHTTP
import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd.UnsealTests {
  @Test func aFileThatCannotBeUnsealedIsNamedAndNotPublished() async throws {
    let key = try await makeKey()
    let other = try await makeKey("other")
    try scratch.file("card/good.jpg", 200_000)
    try scratch.file("card/flipped.jpg", 200_000)
    try scratch.file("card/cut.jpg", 200_000)
    try scratch.file("card/chunk.jpg", 200_000)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run(["push", "--seal", key.recipient, scratch.path("card") + "/", server.url]).end == .exited(0))
    #expect(
      try await run(["push", "--seal", other.recipient, scratch.path("card/good.jpg"), server.url + "foreign.jpg"]).end
        == .exited(0))
    try scratch.file("received/plain.jpg", 100_000)
    func change(_ name: String, _ body: (inout Data) -> Void) throws {
      let url = URL(fileURLWithPath: "\(server.folder.path)/\(name)")
      var data = try Data(contentsOf: url)
      body(&data)
      try data.write(to: url)
    }
    try change("flipped.jpg.age") { $0[150_000] ^= 1 }
    try change("cut.jpg.age") { $0 = $0.prefix(100_000) }
    // The header of one recipient has some 200 bytes: this one ends where a chunk ends.
    try change("chunk.jpg.age") { $0 = $0.prefix($0.count - (200_000 - 3 * 65_536) - 16) }
    let (end, command) = try await unseal(server.folder.path, restored, "-i", key.file)
    #expect(end == .exited(1), "\(command.output)\(command.errors)")
    #expect(Folder(restored).restored() == ["good.jpg"], "\(Folder(restored).files())")
    for name in ["flipped.jpg.age", "cut.jpg.age", "chunk.jpg.age", "foreign.jpg.age", "plain.jpg"] {
      #expect(command.errors.contains("fullbore: \(name): "), "\(command.errors)")
    }
    #expect(command.errors.contains("--copy-unsealed") && command.output.contains("5 failed"))
    #expect(command.errors.contains(/foreign.jpg.age: .*\. -i FILE names another private key/), "\(command.errors)")
    let (_, copied) = try await unseal(
      server.folder.path, restored, "-i", key.file, "-i", other.file, "--copy-unsealed")
    #expect(copied.output.contains("3 failed"), "\(copied.output)\(copied.errors)")
    #expect(Folder(restored).restored() == ["foreign.jpg", "good.jpg", "plain.jpg"])
    #expect(
      FileManager.default.contentsEqual(
        atPath: restored + "/plain.jpg", andPath: server.folder.path + "/plain.jpg"))
  }

  /// The server gives no ranges, so that the bytes which show that the file is not sealed come once more.
  @Test func unsealedFilesOfSimpleServersAreCopied() async throws {
    let key = try await makeKey()
    let bytes = PatternSource(length: 20_000).bytes(count: 20_000)
    let peer = HTTPPeer { request in request.path.hasSuffix("/") ? .init(404) : .init(200, ["ETag": "\"1\""], bytes) }
    defer { peer.stop() }
    let (end, command) = try await unseal("\(peer.url)a.jpg", restored, "-i", key.file, "--copy-unsealed")
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(FileManager.default.contents(atPath: "\(restored)/a.jpg") == Data(bytes))
  }

  /// A proxy or a node that lags answers 404 to a folder that was listed a moment ago.
  @Test func aListedFolderThatIsGoneIsNamed() async throws {
    let key = try await makeKey()
    let list = #"{"entries":[{"name":"sub","url":"./sub/","folder":true}]}"#
    let peer = HTTPPeer { request in
      request.path == "/in/" ? .init(200, ["Content-Type": "application/json"], Array(list.utf8)) : .init(404)
    }
    defer { peer.stop() }
    let (end, command) = try await unseal("\(peer.url)in/", restored, "-i", key.file)
    #expect(end == .exited(1) && command.errors.contains("there is no such folder (404)"), "\(command.errors)")
  }

  /// Each page names another one, and they are two.
  @Test func aListThatRepeatsItselfEnds() async throws {
    let key = try await makeKey()
    let peer = HTTPPeer { request in
      let next = request.query?.contains("after=a") == true ? "b" : "a"
      return .init(200, ["Content-Type": "application/json"], Array("{\"entries\":[],\"next\":\"\(next)\"}".utf8))
    }
    defer { peer.stop() }
    let (end, command) = try await unseal("\(peer.url)in/", restored, "-i", key.file)
    #expect(end == .exited(1) && command.errors.contains("repeats its list"), "\(command.errors)")
  }

  /// With `--overwrite`, one of the two would replace the other.
  @Test func twoFilesOfOneNameAreNotExchanged() async throws {
    let key = try await makeKey()
    let server = try await ServeProcess.start(in: scratch)
    let photo = try scratch.file("a.jpg", 5000)
    _ = try await run(["push", "--seal", key.recipient, photo, server.url])
    try scratch.file("other/a.jpg", 6000, seed: 3)
    try FileManager.default.copyItem(atPath: scratch.path("other/a.jpg"), toPath: server.folder.path + "/a.jpg")
    let (end, command) = try await unseal(
      server.url, restored, "-i", key.file, "--copy-unsealed", "--overwrite")
    #expect(end == .exited(1) && command.errors.contains("another file is restored as a.jpg"), "\(command.errors)")
  }

  @Test func aFolderIsNotCopiedAsAFile() async throws {
    let key = try await makeKey()
    let server = try await ServeProcess.start(in: scratch)
    _ = try await run(["push", "--seal", key.recipient, try makeTree() + "/", server.url + "in/"])
    let (end, command) = try await unseal("\(server.url)in", restored, "-i", key.file, "--copy-unsealed")
    #expect(end == .exited(1) && command.errors.contains("it is a folder: end it with a slash"), "\(command.errors)")
  }

  @Test func aServerThatWantsCredentialsIsExplained() async throws {
    let key = try await makeKey()
    let token = scratch.path("token")
    try "s3cret-token\n".write(toFile: token, atomically: false, encoding: .utf8)
    let server = try await ServeProcess.start(in: scratch, "--token-file", token)
    let (end, command) = try await unseal(server.url, restored, "-i", key.file)
    #expect(end != .exited(0) && command.errors.contains("--token-file FILE"), "\(command.errors)")
    // A file of this machine is known as one.
    let (_, plain) = try await unseal(try scratch.file("plain.jpg", 5000), restored, "-i", key.file)
    #expect(plain.errors.contains("--copy-unsealed") && !plain.errors.contains("slash"), "\(plain.errors)")
  }

  @Test func anotherContentStaysUnlessItIsToBeReplaced() async throws {
    let key = try await makeKey()
    let film = try scratch.file("film.mov", 100_000)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run(["push", "--seal", key.recipient, film, server.url]).end == .exited(0))
    for size in [100_000, 7] {
      let mine = try scratch.file("restored/film.mov", size, seed: 5)
      let before = try Data(contentsOf: URL(fileURLWithPath: mine))
      let (end, kept) = try await unseal(server.url, restored, "-i", key.file)
      #expect(end == .exited(1) && kept.errors.contains("--overwrite"), "\(kept.output)\(kept.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: mine)) == before)
      let (again, replaced) = try await unseal(server.url, restored, "-i", key.file, "--overwrite")
      #expect(again == .exited(0), "\(replaced.output)\(replaced.errors)")
      #expect(FileManager.default.contentsEqual(atPath: mine, andPath: film))
    }
  }

  /// A symbolic link in the destination is not followed, whether it is in the place of a folder or of a file.
  @Test func nothingIsWrittenThroughLinks() async throws {
    let key = try await makeKey()
    try scratch.file("card/sub/film.mov", 100_000)
    let server = try await ServeProcess.start(in: scratch)
    #expect(try await run(["push", "--seal", key.recipient, scratch.path("card") + "/", server.url]).end == .exited(0))
    let outside = try scratch.folder("outside")
    try scratch.folder("restored")
    try FileManager.default.createSymbolicLink(atPath: restored + "/sub", withDestinationPath: outside)
    let (end, first) = try await unseal(server.url, restored, "-i", key.file, "--overwrite")
    #expect(end == .exited(1) && first.errors.contains("symbolic link"), "\(first.output)\(first.errors)")
    #expect(first.errors.contains("rename it, or unseal into another folder"), "\(first.errors)")
    #expect(Folder(outside).files().isEmpty)
    try FileManager.default.removeItem(atPath: restored + "/sub")
    try scratch.folder("restored/sub")
    let target = try scratch.file("outside/mine", 100_000, seed: 9)
    try FileManager.default.createSymbolicLink(atPath: restored + "/sub/film.mov", withDestinationPath: target)
    let before = try Data(contentsOf: URL(fileURLWithPath: target))
    let (again, second) = try await unseal(server.url, restored, "-i", key.file, "--overwrite")
    #expect(again == .exited(1) && second.errors.contains("symbolic link"), "\(second.output)\(second.errors)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == before)
  }

  /// A server that lists names that lead elsewhere.
  @Test func hostileNamesLeadNowhere() async throws {
    let key = try await makeKey()
    let film = try scratch.file("film.mov", 1000)
    let sealed = scratch.path("film.age")
    let age = try Command(try #require(Peer.age.path), ["-r", key.recipient, "-o", sealed, film], in: scratch)
    #expect(try await age.wait() == .exited(0))
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: sealed)))
    let hostile = ["../out.age", "..", ".", "a/../../out.age", scratch.path("absolute.age"), "n\\u0000.age", ""]
    let peer = HTTPPeer { request in
      if request.method == "OPTIONS" { return .init(204, ["Allow": "GET, PUT, HEAD"]) }
      guard request.method == "GET" else { return .init(200) }
      if request.path.hasSuffix("/") && request.headers["Accept"] == "application/json" {
        let names =
          hostile.map { "{\"name\":\"\($0)\",\"url\":null,\"folder\":false}" }
          + [
            "{\"name\":\"x\",\"url\":\"./..%2F..%2Fout.age\",\"folder\":false}",
            "{\"name\":\"d\",\"url\":\"./..%2F\",\"folder\":true}",
            "{\"name\":\"good.age\",\"url\":\"./good.age\",\"folder\":false}",
            "{\"name\":\"good.age\",\"url\":\"./good.age\",\"folder\":false}",
          ]
        return .init(
          200, ["Content-Type": "application/json"],
          Array("{\"entries\":[\(names.joined(separator: ","))],\"next\":null}".utf8))
      }
      return .init(200, ["ETag": "\"1\""], bytes)
    }
    let (end, command) = try await unseal("put+http://127.0.0.1:\(peer.port)/in/", restored, "-i", key.file)
    #expect(end == .exited(1), "\(command.output)\(command.errors)")
    #expect(Folder(restored).restored() == ["good"], "\(command.output)\(command.errors)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/good", andPath: film))
    #expect(command.output.contains("9 failed"), "\(command.output)\(command.errors)")
    let others = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
    #expect(!others.contains("out") && !others.contains("absolute"), "\(others)")
  }

  @Test(.enabled(if: Peer.sshKeygen.isThereOrWanted)) func sshKeysAndPassphrasesOpen() async throws {
    let ssh = scratch.path("id_ed25519")
    let keygen = try Command(
      try #require(Peer.sshKeygen.path), ["-q", "-t", "ed25519", "-N", "", "-f", ssh], in: scratch)
    #expect(try await keygen.wait() == .exited(0))
    let words = scratch.path("words")
    try "correct horse battery\n".write(toFile: words, atomically: true, encoding: .utf8)
    let film = try scratch.file("film.mov", 100_000)
    let server = try await ServeProcess.start(in: scratch)
    let recipient = try String(contentsOfFile: ssh + ".pub", encoding: .utf8)
    #expect(try await run(["push", "--seal", recipient, film, server.url + "ssh.mov"]).end == .exited(0))
    #expect(
      try await run(["push", "--seal-passphrase-file", words, film, server.url + "words.mov"]).end == .exited(0))
    let (end, command) = try await unseal(server.url, restored, "-i", ssh, "--seal-passphrase-file", words)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    for name in ["ssh.mov", "words.mov"] {
      #expect(FileManager.default.contentsEqual(atPath: "\(restored)/\(name)", andPath: film))
    }
  }

  @Test func wrongUsageIsReportedBeforeAnythingIsRead() async throws {
    let key = try await makeKey()
    try scratch.folder("here/below")
    let secret = try #require(
      try String(contentsOfFile: key.file, encoding: .utf8).split(separator: "\n").last.map(String.init))
    try secret.dropLast().write(toFile: scratch.path("broken"), atomically: true, encoding: .utf8)
    for (arguments, message) in [
      ([scratch.path("here"), restored], "--identity"), ([scratch.path("here"), "-i", key.file], "FOLDER"),
      ([scratch.path("here"), scratch.path("here/below"), "-i", key.file], "is in the folder"),
      ([scratch.path("none"), restored, "-i", key.file], "No such file"),
      ([scratch.path("here"), restored, "-i", scratch.path("broken")], "--identity"),
    ] {
      let (end, command) = try await run(["unseal"] + arguments)
      #expect(end == .exited(2) && command.errors.contains(message), "\(arguments): \(command.errors)")
      #expect(!command.errors.contains(secret.dropLast()))
    }
    let (end, empty) = try await unseal(scratch.path("here"), restored, "-i", key.file, "--json")
    #expect(end == .exited(1) && empty.output.contains("no file was found"), "\(empty.output)")
    let (gone, unreachable) = try await unseal(
      "http://127.0.0.1:1/in/", restored, "-i", key.file, "--retries", "0", "--json")
    #expect(gone == .exited(3), "\(unreachable.output)")
    let seen = Set(try (events(empty) + events(unreachable)).compactMap { $0["event"] as? String })
    #expect(seen == ["notice", "error", "summary"])
  }
}
