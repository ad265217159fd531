import BlobTesting
import Foundation
import Synchronization
import TestSupport
import Testing

extension EndToEnd {
  /// `push --delete-after-verify`: only what is proved at the destination is deleted here.
  @Suite(.serialized) struct DeletionTests {
    let scratch = try! Scratch()
    var card: String { scratch.path("card/DCIM/") }
    var left: [String] { Folder(card).files().keys.sorted() }

    func makeCard() throws {
      for name in ["A/IMG_1.JPG", "A/IMG_1.AAE", "A/IMG_2.JPG", "B/notes.txt"] {
        try scratch.photo("card/DCIM/\(name)", seed: UInt64(name.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFFFF))
      }
    }

    func push(_ arguments: String..., to url: String) async throws -> Command {
      let command = try Command(
        Tool.fullbore, ["push", "--delete-after-verify"] + arguments + [card, url], in: scratch)
      try await command.wait()
      return command
    }

    @Test func provedFilesAreDeletedHere() async throws {
      try makeCard()
      let kept = scratch.path("kept")
      try FileManager.default.copyItem(atPath: scratch.path("card/DCIM"), toPath: kept)
      let server = try await ServeProcess.start(in: scratch)
      let push = try await push(to: server.url)
      #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("4 files removed here, proved at the destination"), "\(push.errors)")
      #expect(left == [])
      #expect(FileManager.default.fileExists(atPath: scratch.path("card/DCIM/A")))
      Folder(kept).expectSame(as: server.folder)
      let history = try await fullbore("history", "--json", in: scratch).command.output
      #expect(history.split(separator: "\n").count == 4, "the journal keeps the receipts")
    }

    /// The other server tells sizes only.
    @Test func aSizeDeletesNothing() async throws {
      try makeCard()
      let peer = DavPeer()
      let before = left
      let push = try await push(to: "dav+\(peer.endpoint)")
      #expect(push.end == .exited(1))
      #expect(left == before)
      #expect(push.errors.contains("IMG_2.JPG: stays here: its size is the same at the destination"), "\(push.errors)")
      #expect(push.errors.contains("4 files stay here, and none was removed"), "\(push.errors)")
      #expect(push.errors.components(separatedBy: "stays here: ").count == 5, "each file once: \(push.errors)")
      let verified = try await self.push("--verify", to: "dav+\(peer.endpoint)")
      #expect(verified.end == .exited(0), "\(verified.errors)")
      #expect(left == [])
    }

    /// The server has lost a byte of the sidecar since an earlier push: its picture stays too.
    @Test func thePhotoStaysWithAFileThatIsNotProved() async throws {
      try makeCard()
      let server = try await ServeProcess.start(in: scratch)
      _ = try await fullbore("push", card, server.url, in: scratch)
      let path = "\(server.folder.path)/A/IMG_1.AAE"
      var bytes = try #require(FileManager.default.contents(atPath: path))
      bytes[7] ^= 1
      try bytes.write(to: URL(fileURLWithPath: path))
      let push = try await push(to: server.url)
      #expect(push.end == .exited(1))
      #expect(left == ["A/IMG_1.AAE", "A/IMG_1.JPG"], "\(push.errors)")
      #expect(
        push.errors.contains("IMG_1.JPG: stays here: IMG_1.AAE, which belongs to it, is not proved"), "\(push.errors)")
    }

    /// The server's folder is the source, under another name. The query of a URL changes nothing.
    @Test(arguments: ["", "?key=abc"]) func theOnlyFilesStay(_ query: String) async throws {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.photo("received/A/IMG_1.JPG", seed: 1)
      try FileManager.default.createDirectory(atPath: scratch.path("card"), withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("card/DCIM"), withDestinationPath: server.folder.path)
      let push = try await push(to: server.url + query)
      #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("which may show the very files of this folder"), "\(push.errors)")
      #expect(Folder(server.folder.path).files().keys.sorted() == ["A/IMG_1.JPG"])
    }

    /// The server keeps its list of names for a while, so that a new file is not there, and a renamed one is.
    @Test func aServerThatRemembersNamesIsFoundOut() async throws {
      try makeCard()
      let (card, before) = (card, left)
      let peer = DavPeer { request in
        // As a server that serves links to the files: it can read none that is not there.
        guard request.method == "GET", let file = before.first(where: request.path.hasSuffix) else { return nil }
        return FileManager.default.fileExists(atPath: card + file) ? nil : .init(404)
      }
      let push = try await push("--verify", to: "dav+\(peer.endpoint)")
      #expect(push.end == .exited(1))
      #expect(push.errors.contains("which may show the very files of this folder"), "\(push.errors)")
      #expect(left == before)
    }

    /// As a server that keeps files open: it sends a file under a name that is gone, and knows the new name.
    @Test func aServerThatKeepsFilesOpenIsFoundOut() async throws {
      try makeCard()
      let (card, before) = (card, left)
      let peer = DavPeer { request in
        guard let name = request.path.split(separator: "/").last, name.contains(".fullbore-") else { return nil }
        let isThere = ["A", "B"].contains { FileManager.default.fileExists(atPath: "\(card)\($0)/\(name)") }
        return isThere ? .init(200, [:], [1]) : nil
      }
      let push = try await push("--verify", to: "dav+\(peer.endpoint)")
      #expect(push.end == .exited(1))
      #expect(push.errors.contains("which may show the very files of this folder (it is there as"), "\(push.errors)")
      #expect(left == before)
    }

    /// The user interrupts while a file has another name.
    @Test func aNameIsGivenBackWhenTheUserInterrupts() async throws {
      try makeCard()
      let card = card
      let isAway = Atomic(false)
      let peer = DavPeer { request in
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(card)B")) ?? []
        if request.method != "GET" || names.contains("notes.txt") { return nil }
        isAway.store(true, ordering: .relaxed)
        while isAway.load(ordering: .relaxed) { usleep(1000) }
        return nil
      }
      let before = left
      let push = try Command(
        Tool.fullbore, ["push", "--delete-after-verify", "--verify", card, "dav+\(peer.endpoint)"], in: scratch)
      try await until("a file has another name") { isAway.load(ordering: .relaxed) ? true : nil }
      push.kill(SIGINT)
      #expect(try await push.wait() == .exited(130), "\(push.errors)")
      isAway.store(false, ordering: .relaxed)
      #expect(left == before)
    }

    /// What the program writes later would be in no file.
    @Test func aFileThatAProgramWritesStays() async throws {
      try makeCard()
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.path("card/DCIM/A/IMG_2.JPG")))
      let server = try await ServeProcess.start(in: scratch)
      let push = try await push(to: server.url)
      #expect(push.end == .exited(1))
      #expect(push.errors.contains("a program has IMG_2.JPG open for writing"), "\(push.errors)")
      #expect(left == ["A/IMG_2.JPG"])
      try file.close()
    }

    /// A hidden file, and what a pattern leaves out, were not sent.
    @Test func filesThatWereNotSentAreNotDeleted() async throws {
      try makeCard()
      try scratch.file("card/DCIM/A/.hidden", 10)
      let server = try await ServeProcess.start(in: scratch)
      let push = try await push("--exclude", "*.AAE", to: server.url)
      #expect(push.end == .exited(1), "\(push.errors)")
      #expect(left == ["A/.hidden", "A/IMG_1.AAE", "A/IMG_1.JPG"])
    }

    /// The file is written while the server is asked for it, after it was sent.
    @Test func aFileThatChangesMeanwhileStays() async throws {
      try makeCard()
      let file = scratch.path("card/DCIM/A/IMG_2.JPG")
      let isAsked = Atomic(false)
      let peer = DavPeer { request in
        // The last request for a file is the one for its first byte.
        if request.method != "GET" || request.headers["Range"] != "bytes=0-0" { return nil }
        if request.path.hasSuffix("IMG_2.JPG") { isAsked.store(true, ordering: .relaxed) }
        if request.path.hasSuffix("notes.txt") {
          // The file has its own name again.
          while !isAsked.load(ordering: .relaxed) || !FileManager.default.fileExists(atPath: file) { usleep(1000) }
          try? Data([1, 2, 3]).write(to: URL(fileURLWithPath: file))
        }
        return nil
      }
      _ = try await fullbore("push", card, "dav+\(peer.endpoint)", in: scratch)
      let push = try await push("--verify", to: "dav+\(peer.endpoint)")
      #expect(push.end == .exited(1), "\(push.errors)")
      #expect(left == ["A/IMG_2.JPG"])
    }

    @Test func otherSourcesAndAWatchAreRefused() async throws {
      try makeCard()
      for arguments in [
        ["push", "--delete-after-verify", "-", "http://127.0.0.1:1/a"],
        ["push", "--delete-after-verify", "http://127.0.0.1:1/b", "http://127.0.0.1:1/"],
        ["push", "--delete-after-verify", "sqlite:x?table=a&column=b", "http://127.0.0.1:1/"],
        ["push", "--delete-after-verify", "--edits", "current", card, "http://127.0.0.1:1/"],
        ["watch", "--delete-after-verify", card, "http://127.0.0.1:1/"],
      ] {
        let command = try Command(Tool.fullbore, arguments, in: scratch)
        #expect(try await command.wait() == .exited(2), "\(arguments)")
      }
    }
  }
}
