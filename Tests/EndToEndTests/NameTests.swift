import Foundation
import Testing

extension EndToEnd {
  /// Unusual names and folder trees.
  @Suite(.serialized) struct NameTests {
    let scratch = try! Scratch()

    /// Names as bytes, because Foundation rejects most of them.
    private static let names: [[UInt8]] =
      [
        " leading and trailing ", "two  spaces", "tab\there", "line\nend", "carriage\rreturn", "quote\"and'apostrophe",
        "back\\slash", "-rf", "--help", "~", "$HOME", "`id`", "a;b|c&d", "*?[x]", "100%", "%2F", "%00", "%41", "a+b",
        "#hash", "?query=1", "a:b", "a@b", "a,b;c=d", "CON", "dot.", "...", "a.b.c..", "{}", "<script>",
        "\u{1F468}\u{200D}\u{1F469}",
        "\u{1F3F4}\u{E0067}\u{E007F}", "caf\u{E9}", "cafe\u{301}", "\u{5D0}\u{202E}gpj.exe", "\u{2028}", "\u{FEFF}bom",
        "IMG.jpg", "img.jpg", "Img.JPG", "\u{1B}[31mred\u{1B}]0;title\u{7}", "\u{7F}\u{9B}2J", "NUL\u{1}",
      ].map { Array($0.utf8) } + [
        [0xFF], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xC0, 0xAF], [UInt8](repeating: 0x6E, count: 255),
        Array(String(repeating: "\u{1F4F7}", count: 63).utf8), [UInt8](repeating: 0xFE, count: 255),
      ]

    /// Creates every name as a file, as a folder, and as both.
    private func makeGallery() throws -> String {
      let gallery = try scratch.folder("gallery")
      for (number, name) in Self.names.enumerated() {
        try write([Array("files".utf8), name], "file \(number)")
        try write([Array("folders".utf8), name, name], "in a folder \(number)")
      }
      try write([Array("empty.jpg".utf8)], "")
      try scratch.folder("gallery/empty folder/in it")
      return gallery
    }

    /// Without a slash at its end, the destination is the folder's new name, which is said.
    @Test func aFolderTakesTheNameOfADestinationWithoutASlash() async throws {
      try scratch.file("DCIM/100/a.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      for (source, slash, name, isTold) in [
        ("DCIM", "", "2026/100/a.jpg", true), ("DCIM", "/", "2027/DCIM/100/a.jpg", false),
        ("DCIM/", "", "2028/100/a.jpg", false),
      ] {
        let url = server.url + name.prefix(4) + slash
        let (end, push) = try await fullbore("push", scratch.path(source), url, in: scratch)
        #expect(end == .exited(0) && server.folder.files()[name] != nil, "\(server.folder.files()) \(push.errors)")
        #expect(push.errors.contains("\(url)/DCIM/…") == isTold, "\(push.errors)")
      }
    }

    private func write(_ path: [[UInt8]], _ text: String) throws {
      var bytes = Array(scratch.path("gallery").utf8)
      for (number, name) in path.enumerated() {
        bytes += [UInt8(ascii: "/")] + name
        let isLast = number == path.count - 1
        let made = (bytes + [0]).withUnsafeBufferPointer { buffer in
          buffer.withMemoryRebound(to: CChar.self) { path in
            isLast ? open(path.baseAddress!, O_WRONLY | O_CREAT | O_EXCL, 0o644) : mkdir(path.baseAddress!, 0o755)
          }
        }
        if isLast {
          guard made >= 0 else { throw Command.Failure("cannot make \(name): \(String(cString: strerror(errno)))") }
          _ = Foundation.write(made, text, text.utf8.count)
          close(made)
        }
      }
    }

    @Test(arguments: ["put+", "tus+"]) func anyNameArrivesAsItIs(_ uploadProtocol: String) async throws {
      let gallery = try makeGallery()
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--hidden", "--json", gallery + "/", uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      let sent = try #require(push.output.split(separator: "\n").last)
      #expect(sent.contains("\"files_sent\":\(2 * Self.names.count + 1),"))
      // Empty folders are not sent.
      try FileManager.default.removeItem(atPath: gallery + "/empty folder")
      let diff = try Command("diff", ["-r", "-x", ".fullbore", gallery, server.folder.path], in: scratch)
      #expect(try await diff.wait() == .exited(0), "\(diff.output)\(diff.errors)")
      let (again, second) = try await fullbore(
        "push", "--hidden", gallery + "/", uploadProtocol + server.url, in: scratch)
      #expect(again == .exited(0) && second.output.hasPrefix("0 files sent"), "\(second.output)\(second.errors)")
    }

    /// Names may come from untrusted cards and archives.
    @Test(.enabled(if: Terminal.isThere, "no terminal can be made here"))
    func namesDoNotSteerATerminal() async throws {
      let gallery = try makeGallery()
      let server = try await ServeProcess.start(in: scratch)
      // Runs a shell command in a terminal that `script` creates. The names must not pass through its shell.
      func onTerminal(_ words: String) async throws -> String {
        let terminal = try Command(
          "script", ["-qec", words, "/dev/null"], in: scratch,
          environment: [
            "TERM": "xterm", "FULLBORE_TOOL": Tool.fullbore, "GALLERY": gallery + "/", "URL": server.url,
          ])
        #expect(try await terminal.wait() == .exited(0), "\(terminal.output)")
        return terminal.output
      }
      let push = try await onTerminal("\"$FULLBORE_TOOL\" push -v \"$GALLERY\" \"$URL\"")
      let status = try await onTerminal("\"$FULLBORE_TOOL\" status --all")
      for output in [push, status] {
        let isNamed = output.contains("\\x1b[31mred\\x1b]0;title\\x07")
        #expect(isNamed)
        for scalars in ["\u{1B}]", "\u{1B}[31m", "\u{7}", "\u{9B}", "\u{202E}", "\u{2028}"] {
          let isThere = output.contains(scalars)
          #expect(!isThere, "\(scalars.unicodeScalars.map { String($0.value, radix: 16) })")
        }
      }
    }

    @Test func pathsThatAreNoFilesAreLeftOutAndLinkLoopsEnd() async throws {
      try scratch.file("gallery/a/b/IMG_1.jpg", 1000)
      let gallery = scratch.path("gallery")
      for (link, target) in [
        ("loop", "."), ("a/up", ".."), ("a/b/top", gallery), ("self", "self"), ("ping", "pong"), ("pong", "ping"),
        ("file", "a/b/IMG_1.jpg"),
      ] { #expect(symlink(target, "\(gallery)/\(link)") == 0) }
      #expect(mkfifo(gallery + "/pipe", 0o644) == 0)
      let server = try await ServeProcess.start(in: scratch)
      let socket = try Command(
        "python3", ["-c", "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", gallery + "/socket"],
        in: scratch)
      #expect(try await socket.wait() == .exited(0), "\(socket.errors)")
      let (end, push) = try await fullbore("push", "-v", gallery, "/dev/null", server.url, in: scratch)
      // Broken links, and a device that is named as a source, are failures. Everything else is left out with a reason.
      #expect(end == .exited(1))
      #expect(push.errors.contains("/dev/null: it is a device, and no file or folder"), "\(push.errors)")
      #expect(push.errors.split(separator: "\n").filter { $0.contains("leads nowhere") }.count == 3, "\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["gallery/a/b/IMG_1.jpg", "gallery/file"])
      for reason in [
        "pipe  left out: a pipe", "socket  left out: a socket",
        "loop  left out: a symbolic link to a folder", "top  left out: a symbolic link to a folder",
      ] { #expect(push.output.contains(reason), "\(push.output)") }
    }

    /// The server accepts paths of up to 3,072 bytes; a deeper file is named, and the others arrive.
    @Test(arguments: ["put+", "tus+"]) func aDeepTreeArrivesAsFarAsItCan(_ uploadProtocol: String) async throws {
      let name = String(repeating: "d", count: 100)
      let make = """
        cd "$1"; for depth in $(seq 60); do mkdir \(name); cd -P \(name); echo $depth > here; touch -d 2020-01-01 here; done
        """
      let gallery = try scratch.folder("gallery")
      #expect(try await Command("bash", ["-c", make, "bash", gallery], in: scratch).wait() == .exited(0))
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", gallery + "/", uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(1))
      #expect(push.errors.contains("the path is longer than 3072 bytes"), "\(push.errors.prefix(3000))")
      #expect(push.output.contains("30 files sent") && push.output.contains("30 failed"), "\(push.output.suffix(300))")
      var deepest = ""
      for depth in 1...30 {
        deepest += name + "/"
        let text = try String(contentsOfFile: "\(server.folder.path)/\(deepest)here", encoding: .utf8)
        #expect(text == "\(depth)\n")
      }
      // Foundation cannot delete a tree of this depth.
      #expect(try await Command("rm", ["-rf", gallery], in: scratch).wait() == .exited(0))
    }
  }
}

private enum Terminal {
  static let isThere: Bool = {
    let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
    if terminal >= 0 { close(terminal) }
    return terminal >= 0 && Tool.find("script") != nil
  }()
}
