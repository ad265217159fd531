import BlobCrypto
import BlobSQLite
import Blobs
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `push --seal` with the real binary, opened by programs of other projects.
  @Suite(.serialized, .enabled(if: Peer.age.isThereOrWanted && Peer.sshKeygen.isThereOrWanted)) struct SealTests {
    let scratch = try! Scratch()

    /// A new key of age: the file with the private one, and the public one.
    func makeKey(_ name: String = "key") async throws -> (file: String, recipient: String) {
      try await scratch.makeAgeKey(name)
    }

    func push(_ arguments: String...) async throws -> (end: Command.End, command: Command) {
      let command = try Command(Tool.fullbore, ["push"] + arguments, in: scratch, environment: S3Peer.environment)
      return (try await command.wait(), command)
    }

    /// Expects that `age` opens a sealed file to the bytes of `plain`.
    func expectOpens(
      _ sealed: String, to plain: String, with key: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
      let opened = scratch.newPath("opened")
      let age = try Command(
        try #require(Peer.age.path, Peer.age.reason), ["-d", "-i", key, "-o", opened, sealed], in: scratch)
      #expect(try await age.wait() == .exited(0), "\(sealed): \(age.errors)", sourceLocation: sourceLocation)
      // age makes no file for an empty text.
      if !FileManager.default.fileExists(atPath: opened) { try Data().write(to: URL(fileURLWithPath: opened)) }
      #expect(
        FileManager.default.contentsEqual(atPath: opened, andPath: plain), "\(sealed) differs",
        sourceLocation: sourceLocation)
      try? FileManager.default.removeItem(atPath: opened)
    }

    @Test func eachRecipientCanOpenASealedFile() async throws {
      let key = try await makeKey()
      let other = try await makeKey("other")
      let ssh = scratch.path("id_ed25519")
      let keygen = try Command(
        try #require(Peer.sshKeygen.path, Peer.sshKeygen.reason), ["-q", "-t", "ed25519", "-N", "", "-f", ssh],
        in: scratch)
      #expect(try await keygen.wait() == .exited(0), "\(keygen.errors)")
      let list = scratch.path("recipients")
      let line = try String(contentsOfFile: ssh + ".pub", encoding: .utf8)
      try "# who may read\n\n\(line)\(other.recipient)\n".write(toFile: list, atomically: true, encoding: .utf8)
      let sizes = [0, 1, 65_535, 65_536, 65_537, 5_000_000]
      for size in sizes { try scratch.file("card/\(size).mov", size) }
      let server = try await ServeProcess.start(in: scratch)
      let options = ["--seal", key.recipient, "--seal-recipients-file", list, scratch.path("card") + "/", server.url]
      let (end, first) = try await push(
        "--verify", options[0], options[1], options[2], options[3], options[4], options[5])
      #expect(end == .exited(0), "\(first.output)\(first.errors)")
      #expect(Set(server.folder.files().keys) == Set(sizes.map { "\($0).mov.age" }))
      for size in sizes {
        let sealed = "\(server.folder.path)/\(size).mov.age"
        for key in [key.file, other.file, ssh] {
          try await expectOpens(sealed, to: scratch.path("card/\(size).mov"), with: key)
        }
      }
      let (again, second) = try await push(options[0], options[1], options[2], options[3], options[4], options[5])
      #expect(
        again == .exited(0) && second.output.contains("\(sizes.count) done before"), "\(second.output)\(second.errors)")
      #expect(!FileManager.default.fileExists(atPath: scratch.path("journal.sqlite-seal")))
    }

    /// In both directions, with another implementation, also for passphrases, which `age` asks a terminal for.
    @Test(.enabled(if: Peer.pyrage.isThereOrWanted), arguments: ["key", "passphrase", "ssh"])
    func anotherImplementationAgrees(_ kind: String) async throws {
      let python = try #require(Peer.pyrage.path, Peer.pyrage.reason)
      let script = """
        import sys, pyrage
        kind, secret, plain, sealed, ours, opened = sys.argv[1:]
        text = open(secret).read()
        if kind == "passphrase":
            seal = lambda data: pyrage.passphrase.encrypt(data, text.strip())
            unseal = lambda data: pyrage.passphrase.decrypt(data, text.strip())
        else:
            if kind == "key":
                identity = pyrage.x25519.Identity.from_str([l for l in text.split() if l.startswith("AGE")][0])
                recipient = identity.to_public()
            else:
                identity = pyrage.ssh.Identity.from_buffer(text.encode())
                recipient = pyrage.ssh.Recipient.from_str(open(secret + ".pub").read())
            seal = lambda data: pyrage.encrypt(data, [recipient])
            unseal = lambda data: pyrage.decrypt(data, [identity])
        open(sealed, "wb").write(seal(open(plain, "rb").read()))
        open(opened, "wb").write(unseal(open(ours, "rb").read()))
        """
      let plain = try scratch.file("film.mov", 200_001)
      let server = try await ServeProcess.start(in: scratch)
      var secret = scratch.path("passphrase")
      var option = ["--seal-passphrase-file", secret]
      var identity = SealIdentity.passphrase("correct horse battery")
      switch kind {
      case "key":
        let key = try await makeKey()
        (secret, option) = (key.file, ["--seal", key.recipient])
        let text = try String(contentsOfFile: secret, encoding: .utf8)
        identity = try SealIdentity(String(try #require(text.split(separator: "\n").last)))
      case "ssh":
        secret = scratch.path("id")
        let program = try #require(Peer.sshKeygen.path, Peer.sshKeygen.reason)
        let keygen = try Command(program, ["-q", "-t", "ed25519", "-N", "", "-f", secret], in: scratch)
        #expect(try await keygen.wait() == .exited(0), "\(keygen.errors)")
        option = ["--seal", try String(contentsOfFile: secret + ".pub", encoding: .utf8)]
        identity = try SealIdentity(try String(contentsOfFile: secret, encoding: .utf8))
      default: try "correct horse battery\n".write(toFile: secret, atomically: true, encoding: .utf8)
      }
      let (end, sent) = try await push(option[0], option[1], plain, server.url)
      #expect(end == .exited(0), "\(sent.output)\(sent.errors)")
      let (theirs, opened) = (scratch.path("theirs.age"), scratch.path("opened"))
      let peer = try Command(
        python, ["-c", script, kind, secret, plain, theirs, "\(server.folder.path)/film.mov.age", opened], in: scratch)
      #expect(try await peer.wait() == .exited(0), "\(peer.errors)")
      #expect(FileManager.default.contentsEqual(atPath: opened, andPath: plain))
      let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: theirs)))
      let mine = try unsealed(bytes, identity)
      #expect(mine == Array(try Data(contentsOf: URL(fileURLWithPath: plain))))
      #expect(!sent.output.contains("horse") && !sent.errors.contains("horse"))
    }

    /// The client is killed in the middle, and the same push goes on.
    @Test(arguments: ["put+", "tus+", "resumable+"], ["push", "resume"])
    func aKilledSealedPushIsFinished(_ dialect: String, _ how: String) async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 24 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let arguments = ["push", "--seal", key.recipient, film, dialect + server.url]
      let killed = try Command(Tool.fullbore, ["push", "--bwlimit", "8M"] + arguments.dropFirst(), in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 4 << 20 ? true : nil }
      try await untilEveryFileIsKnown(in: scratch)
      killed.kill(SIGKILL)
      try await killed.wait()
      if dialect != "put+" { #expect(FileManager.default.fileExists(atPath: scratch.path("journal.sqlite-seal"))) }
      let again = try Command(Tool.fullbore, how == "push" ? arguments : ["resume"], in: scratch)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      if dialect != "put+" { #expect(again.output.contains("resumed"), "\(again.output)") }
      #expect(server.folder.files().keys.sorted() == ["film.mov.age"])
      try await expectOpens("\(server.folder.path)/film.mov.age", to: film, with: key.file)
      #expect(!FileManager.default.fileExists(atPath: scratch.path("journal.sqlite-seal")))
    }

    @Test func aKilledSealedPushToS3IsFinished() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 40 << 20)
      let peer = S3Peer()
      let arguments = [
        "--seal", key.recipient, film, "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)",
      ]
      let killed = try Command(
        Tool.fullbore, ["push", "--bwlimit", "16M"] + arguments, in: scratch, environment: S3Peer.environment)
      try await until("a part has arrived") { peer.unfinished() > 8 << 20 ? true : nil }
      killed.kill(SIGKILL)
      try await killed.wait()
      let again = try Command(Tool.fullbore, ["push"] + arguments, in: scratch, environment: S3Peer.environment)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      #expect(again.output.contains("resumed"), "\(again.output)")
      let sealed = scratch.path("film.mov.age")
      try Data(try #require(peer.objects["in/film.mov.age"]).bytes).write(to: URL(fileURLWithPath: sealed))
      try await expectOpens(sealed, to: film, with: key.file)
    }

    @Test(.enabled(if: Peer.rclone.isThereOrWanted)) func aKilledSealedPushToWebDAVIsSentAgain() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 24 << 20)
      let folder = try scratch.folder("dav")
      let server = try await DavServer.rclone.start(into: folder, in: scratch)
      let arguments = ["--seal", key.recipient, film, "dav+\(server.url)"]
      let killed = try Command(Tool.fullbore, ["push", "--bwlimit", "8M"] + arguments, in: scratch)
      try await until("a part has arrived") { Folder(folder).received() > 4 << 20 ? true : nil }
      killed.kill(SIGKILL)
      try await killed.wait()
      let again = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      try await expectOpens("\(folder)/film.mov.age", to: film, with: key.file)
    }

    /// A pipe, a URL and a row of a database.
    @Test func everyKindOfSourceIsSealed() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 3_000_000)
      try scratch.file("received/there.mov", 3_000_000)
      let server = try await ServeProcess.start(in: scratch)
      let pipe = try Command(
        "bash",
        [
          "-c", "exec \"$0\" \"$@\" < \(film)", Tool.fullbore, "push", "--seal", key.recipient, "-", "--name",
          "pipe.mov", server.url,
        ],
        in: scratch)
      #expect(try await pipe.wait() == .exited(0), "\(pipe.output)\(pipe.errors)")
      try await expectOpens("\(server.folder.path)/pipe.mov.age", to: film, with: key.file)
      let (end, url) = try await push("--seal", key.recipient, "\(server.url)there.mov", "\(server.url)again/named.age")
      #expect(end == .exited(0), "\(url.output)\(url.errors)")
      try await expectOpens(
        "\(server.folder.path)/again/named.age", to: scratch.path("received/there.mov"), with: key.file)
      let database = try Database(BytePath(scratch.path("album.db")))
      try database.execute("CREATE TABLE photo(file TEXT, version INTEGER, data BLOB)")
      let insert = try database.statement("INSERT INTO photo VALUES('row.mov', 1, ?1)")
      try insert.bind(1, Array(try Data(contentsOf: URL(fileURLWithPath: film))))
      try insert.run()
      for version in ["", "&version=version"] {
        let row = "sqlite:\(scratch.path("album.db"))?table=photo&column=data&name=file" + version
        let (end, sent) = try await push("--seal", key.recipient, row, "\(server.url)rows\(version.count)/")
        #expect(end == .exited(0), "\(sent.output)\(sent.errors)")
        try await expectOpens("\(server.folder.path)/rows\(version.count)/row.mov.age", to: film, with: key.file)
      }
    }

    @Test func anExistingNameIsRefusedWithAdvice() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      let arguments = ["push", "--seal", key.recipient, film, server.url]
      let first = try Command(Tool.fullbore, arguments, in: scratch)
      #expect(try await first.wait() == .exited(0), "\(first.errors)")
      let before = try Data(contentsOf: URL(fileURLWithPath: "\(server.folder.path)/film.mov.age"))
      // Without a journal, nothing tells that it is the same file.
      let second = try Command(
        Tool.fullbore, arguments, in: scratch, environment: ["FULLBORE_JOURNAL": scratch.path("other.sqlite")])
      #expect(try await second.wait() == .exited(1), "\(second.output)")
      #expect(
        second.errors.contains("409") && second.errors.contains("Each time a file is sealed it has other bytes"),
        "\(second.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: "\(server.folder.path)/film.mov.age")) == before)
    }

    @Test func aNumberIsPutBeforeTheEndingOfTheFileItself() async throws {
      let key = try await makeKey()
      let film = try scratch.file("film.mov", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("received/film.mov.age", 10)
      let options = ["--seal", key.recipient, "--on-conflict", "rename", film, server.url]
      let (end, renamed) = try await push(options[0], options[1], options[2], options[3], options[4], options[5])
      #expect(end == .exited(0), "\(renamed.output)\(renamed.errors)")
      try await expectOpens("\(server.folder.path)/film-2.mov.age", to: film, with: key.file)
      let (again, second) = try await push(options[0], options[1], options[2], options[3], options[4], options[5])
      #expect(again == .exited(0) && second.output.contains("1 done before"), "\(second.output)\(second.errors)")
      let (_, dry) = try await push("--dry-run", options[0], options[1], options[4], options[5])
      #expect(dry.output.contains("film.mov.age"), "\(dry.output)")
    }

    /// A private key that was taken for the public one is not shown, and nothing is sent.
    @Test func aWrongRecipientIsAUsageError() async throws {
      let key = try await makeKey()
      let secret = try #require(
        try String(contentsOfFile: key.file, encoding: .utf8).split(separator: "\n").last.map(String.init))
      let film = try scratch.file("film.mov", 1000)
      for arguments in [["--seal", secret], ["--seal-recipients-file", key.file], ["--seal", "age1x"]] {
        let (end, command) = try await push(arguments[0], arguments[1], film, "http://127.0.0.1:1/")
        #expect(end == .exited(2), "\(command.output)\(command.errors)")
        #expect(!command.errors.contains(secret.dropFirst(20)), "\(command.errors)")
      }
      let words = scratch.path("words")
      try "correct horse".write(toFile: words, atomically: true, encoding: .utf8)
      let (end, both) = try await push(
        "--seal", key.recipient, "--seal-passphrase-file", words, film, "http://127.0.0.1:1/")
      #expect(end == .exited(2) && both.errors.contains("no other recipients"), "\(both.errors)")
      // The key of a file that was sealed before is gone.
      let (compared, verify) = try await push(
        "--seal", key.recipient, "--check", "--verify", film, "http://127.0.0.1:1/")
      #expect(compared == .exited(2) && verify.errors.contains("cannot be compared"), "\(verify.errors)")
    }
  }
}

/// The plaintext of a file of age.
private func unsealed(_ bytes: [UInt8], _ identity: SealIdentity) throws -> [UInt8] {
  let reader = try UnsealedSource(DataSource(bytes), with: [identity]).open(at: 0, Cancellation())
  var plain: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
    if count == 0 { return plain }
    plain += buffer.prefix(count)
  }
}
