import BlobTesting
import Foundation
import Synchronization
import TestSupport
import Testing

// Servers that keep files open, and files that change while they have another name.
extension EndToEnd.DeletionTests {
  /// nginx sends a file that it has opened before, though the name is gone.
  private func startCachingServer(_ folder: String) async throws -> PeerServer {
    try await .nginx(
      into: folder,
      rules: "open_file_cache max=1000 inactive=300s; open_file_cache_valid 300s; open_file_cache_min_uses 1;",
      in: scratch)
  }

  @Test(.needs(.nginx)) func aServerThatKeepsTheVeryFilesOpenIsFoundOut() async throws {
    try makeCard()
    let gallery = try scratch.folder("gallery")
    for name in left {
      let link = URL(fileURLWithPath: "\(gallery)/\(name)")
      try FileManager.default.createDirectory(at: link.deletingLastPathComponent(), withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: card + name)
    }
    let before = left
    let server = try await startCachingServer(gallery)
    let push = try await push("--verify", to: "put+\(server.url)/")
    #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("IMG_2.JPG: stays here: a program has IMG_2.JPG open"), "\(push.errors)")
    #expect(left == before)
  }

  /// The files that the server keeps open are others.
  @Test(.needs(.nginx)) func copiesAtSuchAServerAreProved() async throws {
    try makeCard()
    let gallery = try scratch.folder("gallery")
    let server = try await startCachingServer(gallery)
    let push = try await push("--verify", to: "put+\(server.url)/")
    #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
    #expect(left == [])
    #expect(Folder(gallery).files().count == 4)
  }

  /// A program saves the file while it has another name: the version before, which is at the destination, is no file of
  /// its own then.
  @Test func aNewVersionTakesTheNameOfTheOneBefore() async throws {
    try makeCard()
    let file = scratch.path("card/DCIM/B/notes.txt")
    let peer = DavPeer { request in
      if request.method == "GET", request.path.hasSuffix("notes.txt"), !FileManager.default.fileExists(atPath: file) {
        try? Data([1, 2, 3]).write(to: URL(fileURLWithPath: file))
      }
      return nil
    }
    let push = try await push("--verify", to: "dav+\(peer.endpoint)")
    #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("notes.txt: stays here: notes.txt has got a new version"), "\(push.errors)")
    #expect(left == ["B/notes.txt"], "\(push.errors)")
    #expect(FileManager.default.contents(atPath: file) == Data([1, 2, 3]))
  }

  /// The renaming changes the file's change time.
  @Test func aFileThatStaysIsNotSentAgain() async throws {
    try makeCard()
    let server = try await ServeProcess.start(in: scratch)
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: scratch.path("card/DCIM/A/IMG_2.JPG")))
    let stays = try await push("--overwrite", to: server.url)
    #expect(stays.end == .exited(1) && left == ["A/IMG_2.JPG"], "\(stays.errors)")
    try file.close()
    let again = try Command(Tool.fullbore, ["push", "--overwrite", card, server.url], in: scratch)
    #expect(try await again.wait() == .exited(0), "\(again.errors)")
    #expect(again.output.contains("1 done before, not asked"), "\(again.output)")
  }

  @Test func aFileWithALongNameIsDeleted() async throws {
    let name = "B/" + String(repeating: "x", count: 246) + ".txt"
    try scratch.photo("card/DCIM/\(name)", seed: 1)
    let server = try await ServeProcess.start(in: scratch)
    let push = try await push(to: server.url)
    #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
    #expect(left == [] && server.folder.files()[name] == 20_000)
    #expect(try FileManager.default.contentsOfDirectory(atPath: card + "B") == [])
  }

  /// As after a SIGKILL.
  @Test(arguments: ["card/DCIM/", "card/DCIM/B/"], [true, false])
  func theNextPushGivesALongNameBack(_ source: String, _ isOneFile: Bool) async throws {
    let name = String(repeating: "x", count: 246) + ".txt"
    try scratch.photo("card/DCIM/B/.fullbore-aside/\(name)", seed: 1)
    let server = try await ServeProcess.start(in: scratch)
    let path = scratch.path(isOneFile ? "card/DCIM/B/\(name)" : source)
    if !isOneFile {
      let check = try Command(Tool.fullbore, ["check", path, server.url], in: scratch)
      #expect(try await check.wait() == .exited(1), "\(check.output)\(check.errors)")
      #expect((check.output + check.errors).contains("push gives their names back"), "\(check.output)\(check.errors)")
    }
    let push = try Command(Tool.fullbore, ["push", path, server.url], in: scratch)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("back, since an interrupted push"), "\(push.errors)")
    #expect(left == ["B/\(name)"])
    #expect(server.folder.files().keys.allSatisfy { $0.hasSuffix(name) && !$0.contains("aside") })
  }
}
