import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `push --delete-after-verify`: only what is proved at the destination is deleted here.
  @Suite(.serialized) struct DeletionTests {
    let scratch = try! Scratch()
    private var card: String { scratch.path("card/DCIM/") }
    private var left: [String] { Folder(card).files().keys.sorted() }

    private func makeCard() throws {
      for name in ["A/IMG_1.JPG", "A/IMG_1.AAE", "A/IMG_2.JPG", "B/notes.txt"] {
        try scratch.photo("card/DCIM/\(name)", seed: UInt64(name.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFFFF))
      }
    }

    private func push(_ arguments: String..., to url: String) async throws -> Command {
      let command = try Command(
        Tool.fullbore, ["push", "--delete-after-verify"] + arguments + [card, url], in: scratch)
      try await command.wait()
      return command
    }

    @Test func whatIsProvedIsDeletedHere() async throws {
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

    /// The server's folder is the source, under another name.
    @Test func theOnlyFilesStay() async throws {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.photo("received/A/IMG_1.JPG", seed: 1)
      try FileManager.default.createDirectory(atPath: scratch.path("card"), withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: scratch.path("card/DCIM"), withDestinationPath: server.folder.path)
      let push = try await push(to: server.url)
      #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("the destination shows the very files of this folder"), "\(push.errors)")
      #expect(Folder(server.folder.path).files().keys.sorted() == ["A/IMG_1.JPG"])
    }

    /// A hidden file, and what a pattern leaves out, were not sent.
    @Test func whatWasNotSentStays() async throws {
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
      let peer = DavPeer { request in
        // The last request for the content of the file is that of the comparison.
        if request.method == "GET", request.path.hasSuffix("notes.txt") {
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
