import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `push --seal-names` with the real binary, and `unseal` of what arrives.
  @Suite(.serialized, .enabled(if: Peer.age.isThereOrWanted)) struct SealNamesTests {
    let scratch = try! Scratch()
    var restored: String { scratch.path("restored") }
    var card: String { scratch.path("card") + "/" }

    func makeKey(_ name: String = "key") async throws -> (file: String, recipient: String) {
      try await scratch.makeAgeKey(name)
    }

    /// `journal`: a name that stands for another machine.
    func run(_ arguments: [String], journal: String? = nil) async throws -> (end: Command.End, command: Command) {
      var environment = S3Peer.environment
      if let journal { environment["FULLBORE_JOURNAL"] = scratch.path(journal) }
      let command = try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
      return (try await command.wait(), command)
    }

    func expect(
      _ exit: Int32, _ arguments: String..., journal: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Command {
      let (end, command) = try await run(arguments, journal: journal)
      #expect(end == .exited(exit), "\(command.output)\(command.errors)", sourceLocation: sourceLocation)
      return command
    }

    static let names = ["Hochzeit", "Anna & Ben", "IMG_0001-Geheim.jpg", "Übung 100%+#.jpg", "oben.mov"]

    /// A tree with equal names in different folders.
    func makeTree() throws {
      try scratch.file("card/Hochzeit/Anna & Ben/IMG_0001-Geheim.jpg", 70_000)
      try scratch.file("card/Hochzeit/IMG_0001-Geheim.jpg", 1000, seed: 2)
      try scratch.file("card/Hochzeit/Anna & Ben/Übung 100%+#.jpg", 0)
      try scratch.file("card/oben.mov", 300_000, seed: 3)
    }

    func indexes(in names: some Sequence<String>) -> [String] {
      names.filter { $0.split(separator: "/").last?.hasPrefix("fullbore-index-") == true }
    }

    /// The lines of the files in an index, as `age -d` shows them.
    func lines(of index: String, _ key: String) async throws -> [String] {
      let age = try Command(try #require(Peer.age.path, Peer.age.reason), ["-d", "-i", key, index], in: scratch)
      #expect(try await age.wait() == .exited(0), "\(age.errors)")
      return age.output.split(separator: "\n").dropFirst(3).map(String.init)
    }

    func expectRestored(sourceLocation: SourceLocation = #_sourceLocation) {
      Folder(scratch.path("card")).expectSame(as: Folder(restored), sourceLocation: sourceLocation)
      for name in Folder(scratch.path("card")).files().keys {
        #expect(time("\(restored)/\(name)") == time("\(card)\(name)"), "\(name)", sourceLocation: sourceLocation)
      }
    }

    private func time(_ path: String) -> Date? {
      try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
    }

    enum Kind: String, CaseIterable { case server, folder, s3, rclone }

    @Test(arguments: Kind.allCases) func aTreeIsRestoredAndSentOnce(_ kind: Kind) async throws {
      if kind == .rclone, !Peer.rclone.isThereOrWanted { return }
      let key = try await makeKey()
      try makeTree()
      var settings = S3Peer.Options()
      settings.page = 2
      let s3 = S3Peer(settings)
      var (target, source, options, there) = ("", "", [String](), { [String]() })
      var running: AnyObject?
      switch kind {
      case .server, .folder:
        let server = try await ServeProcess.start(in: scratch)
        (running, target) = (server, server.url + "in/")
        source = kind == .server ? target : server.folder.path + "/in"
        there = { Folder(server.folder.path + "/in").files().keys.sorted() }
      case .s3:
        (target, options) = ("s3://media/in/", ["--endpoint", "http://127.0.0.1:\(s3.port)"])
        there = { s3.objects.keys.map { String($0.dropFirst("in/".count)) }.sorted() }
      case .rclone:
        let folder = try scratch.folder("dav")
        let server = try await DavServer.rclone.start(into: folder, in: scratch)
        (running, target) = (server, "dav+\(server.url)")
        there = { Folder(folder).files().keys.sorted() }
      }
      if source.isEmpty { source = target }
      let push = ["push", "--seal", key.recipient, "--seal-names", "--verify"] + options + [card, target]
      let (end, first) = try await run(push)
      #expect(end == .exited(0), "\(first.output)\(first.errors)")
      let names = there()
      #expect(names.count == 5 && indexes(in: names).count == 1, "\(names)")
      let words = names.flatMap { $0.split(separator: "/") }
      #expect(words.allSatisfy { $0.count == 26 || $0.count == 30 || $0.hasPrefix("fullbore-index-") }, "\(names)")
      #expect(Set(words).count == 7, "equal names look different: \(names)")
      let (again, second) = try await run(push)
      #expect(again == .exited(0) && second.output.contains("4 done before"), "\(second.output)\(second.errors)")
      #expect(there() == names)
      let unseal = ["unseal", source, restored, "-i", key.file] + options
      let (unsealed, command) = try await run(unseal)
      #expect(unsealed == .exited(0), "\(command.output)\(command.errors)")
      expectRestored()
      // A file that is new has the next index.
      try scratch.file("card/Hochzeit/neu.jpg", 10)
      #expect(try await run(push).end == .exited(0))
      #expect(there().count == 7 && indexes(in: there()).count == 2)
      #expect(try await run(unseal).end == .exited(0))
      expectRestored()
      _ = running
    }

    /// One file is opened by `age` alone, and so is the index, which says what it is called.
    @Test func ageOpensFilesAndTheIndex() async throws {
      let key = try await makeKey()
      try makeTree()
      let server = try await ServeProcess.start(in: scratch)
      _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
      let index = try #require(indexes(in: server.folder.files().keys).first)
      let lines = try await lines(of: "\(server.folder.path)/\(index)", key.file)
      #expect(lines.count == 4)
      let words = try #require(lines.first { $0.hasSuffix(" oben.mov.age") }).split(separator: " ")
      let opened = scratch.path("opened")
      let age = try Command(
        try #require(Peer.age.path), ["-d", "-i", key.file, "-o", opened, "\(server.folder.path)/\(words[0])"],
        in: scratch)
      #expect(try await age.wait() == .exited(0), "\(age.errors)")
      #expect(FileManager.default.contentsEqual(atPath: opened, andPath: card + "oben.mov"))
    }

    enum Way: String, CaseIterable { case put, tus, parts, resumable, dav, s3, form }

    /// The names as they are, percent-encoded and in base64 are in no byte that leaves.
    @Test(arguments: Way.allCases) func noNameIsOnTheWire(_ way: Way) async throws {
      let key = try await makeKey()
      try makeTree()
      let size = way == .parts ? 17 << 20 : 6 << 20
      try scratch.file("card/Hochzeit/Film-mit-langem-Namen.mov", size)
      let s3 = S3Peer()
      let form = FormPeer()
      let server = try await ServeProcess.start(in: scratch, "--host", "127.0.0.1")
      let folder = try scratch.folder("dav")
      let dav = way == .dav ? try await DavServer.rclone.start(into: folder, in: scratch) : nil
      let port =
        switch way {
        case .put, .tus, .parts, .resumable: server.port
        case .dav: dav.flatMap { URL(string: $0.url)?.port } ?? 0
        case .s3: s3.port
        case .form: form.endpoint.port
        }
      let relay = RecordingRelay(to: port)
      let url = "http://127.0.0.1:\(relay.port)/"
      var options: [String] = []
      var target = "\(way.rawValue)+\(url)"
      switch way {
      case .put, .tus, .resumable: break
      case .parts: (target, options) = ("tus+\(url)", ["--parts-at-once", "3"])
      case .dav: target = "dav+\(url)"
      case .s3: (target, options) = ("s3://media/in/", ["--endpoint", url, "--part-size", "5M"])
      case .form: (target, options) = ("form+\(url)", ["--form", "path={path}", "--form", "name={name}"])
      }
      let (end, push) = try await run(["push", "--seal", key.recipient, "--seal-names"] + options + [card, target])
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let sent = Data(relay.sent)
      #expect(sent.count > size)
      let index = Self.forms(of: "fullbore-index-")
      #expect(index.contains { sent.range(of: Data($0)) != nil }, "the index was sent")
      for name in Self.names + ["Film-mit-langem-Namen.mov"] {
        for form in Self.forms(of: name) {
          #expect(sent.range(of: Data(form)) == nil, "\(name) as \(String(decoding: form, as: UTF8.self))")
        }
      }
    }

    /// How a name may be written: base64 depends on the number of bytes before it.
    private static func forms(of name: String) -> [[UInt8]] {
      var forms = [Array(name.utf8)]
      let plain = CharacterSet.alphanumerics.intersection(CharacterSet(charactersIn: "\u{0}"..."\u{7F}"))
      for others in ["-._~", "-._~&+", ""] {
        let allowed = plain.union(CharacterSet(charactersIn: others))
        forms.append(Array((name.addingPercentEncoding(withAllowedCharacters: allowed) ?? name).utf8))
      }
      for before in 0..<3 {
        let text = Data(Array(repeating: UInt8(ascii: "/"), count: before) + Array(name.utf8)).base64EncodedString()
        // The first and the last letters also depend on the bytes around the name.
        forms.append(Array(text.utf8.dropFirst(before == 0 ? 0 : 4).dropLast(4)))
      }
      return forms
    }
  }
}
