import BlobTesting
import Foundation
import Synchronization
import TestSupport
import Testing

// The names that files have for a moment before they are deleted.
extension EndToEnd.DeletionTests {
  /// One file of a folder at the destination is a link to the file here, and the others are copies.
  @Test func oneLinkAmongCopiesIsFoundOut() async throws {
    try makeCard()
    try scratch.file("card/DCIM/A/first.txt", 10)
    try scratch.age("card/DCIM/A/first.txt")
    let (card, before) = (card, left)
    let peer = DavPeer { request in
      guard request.method == "GET", request.path.hasSuffix("A/IMG_2.JPG") else { return nil }
      return FileManager.default.fileExists(atPath: card + "A/IMG_2.JPG") ? nil : .init(404)
    }
    defer { peer.stop() }
    let push = try await push("--verify", to: "dav+\(peer.endpoint)")
    #expect(push.end == .exited(1))
    #expect(push.errors.contains("while IMG_2.JPG had another name here"), "\(push.errors)")
    #expect(left == before, "\(push.errors)")
  }

  /// The destination has the only copy of the first file, also in the next push, which does not find it here any more.
  @Test(arguments: ["", "put+", "tus+", "resumable+"])
  func aDeletedFileIsNotReplacedByAnotherOneOfItsName(_ uploadProtocol: String) async throws {
    try scratch.photo("card/DCIM/A/IMG_1.JPG", seed: 1)
    try scratch.photo("card/DCIM/B/IMG_1.JPG", seed: 2)
    let first = FileManager.default.contents(atPath: card + "A/IMG_1.JPG")
    let server = try await ServeProcess.start(in: scratch)
    for _ in 0..<2 {
      let push = try await push("--verify", "--overwrite", "--layout", "{name}", to: uploadProtocol + server.url)
      #expect(push.end == .exited(1), "\(push.output)\(push.errors)")
      #expect(left == ["B/IMG_1.JPG"])
      #expect(FileManager.default.contents(atPath: "\(server.folder.path)/IMG_1.JPG") == first)
    }
    let plain = try await fullbore(
      "push", "--overwrite", "--layout", "{name}", card, uploadProtocol + server.url, in: scratch)
    #expect(plain.end == .exited(1) && plain.command.errors.contains("would replace its only copy"), "\(plain)")
    let renamed = try await push(
      "--verify", "--on-conflict", "rename", "--layout", "{name}", to: uploadProtocol + server.url)
    #expect(renamed.end == .exited(0), "\(renamed.output)\(renamed.errors)")
    #expect(left == [] && server.folder.files().keys.sorted() == ["IMG_1-2.JPG", "IMG_1.JPG"])
  }

  /// The camera's counter has begun again, so another photo has the path of the deleted one.
  @Test(arguments: ["", "put+", "resumable+"])
  func aDeletedFileIsNotReplacedByAnotherOneOfItsPath(_ uploadProtocol: String) async throws {
    let server = try await ServeProcess.start(in: scratch)
    try scratch.photo("card/DCIM/A/IMG_1.JPG", seed: 1)
    let first = FileManager.default.contents(atPath: card + "A/IMG_1.JPG")
    let push = try await push("--verify", "--overwrite", to: uploadProtocol + server.url)
    #expect(push.end == .exited(0) && left == [], "\(push.output)\(push.errors)")
    try scratch.photo("card/DCIM/A/IMG_1.JPG", seed: 2)
    // Neither a refusal nor a push that replaces nothing ends the protection.
    for option in ["--overwrite", "--overwrite", "--verbose", "--overwrite"] {
      let second = try await self.push("--verify", option, to: uploadProtocol + server.url)
      #expect(second.end == .exited(1) && left == ["A/IMG_1.JPG"], "\(second.output)\(second.errors)")
      let isNamed = second.errors.contains("an earlier file of this name, which was deleted here")
      #expect(isNamed == (option == "--overwrite"), "\(second.errors)")
      #expect(FileManager.default.contents(atPath: "\(server.folder.path)/A/IMG_1.JPG") == first)
    }
    // The user has deleted the first photo at the destination, in another second than that of its deletion here.
    try await Task.sleep(for: .seconds(1.1))
    try FileManager.default.removeItem(atPath: "\(server.folder.path)/A/IMG_1.JPG")
    let plain = try await fullbore("push", card, uploadProtocol + server.url, in: scratch)
    #expect(plain.end == .exited(0), "\(plain)")
    try scratch.photo("card/DCIM/A/IMG_1.JPG", seed: 3)
    let edited = try await fullbore("push", "--overwrite", card, uploadProtocol + server.url, in: scratch)
    #expect(edited.end == .exited(0), "\(edited)")
  }

  /// Kills a push while a file has its other name. Returns that name.
  private func killed(_ peer: DavPeer, _ isAsked: Box) async throws -> String {
    let push = try Command(
      Tool.fullbore, ["push", "--delete-after-verify", "--verify", card, "dav+\(peer.endpoint)"], in: scratch)
    try await until("a file has another name") { isAsked.value.load(ordering: .relaxed) ? true : nil }
    push.kill(SIGKILL)
    try await push.wait()
    return try #require(left.first { $0.contains(".fullbore-") })
  }

  /// A server that does not answer while the file `name` has another name here.
  private func peerThatWaits(for name: String, _ isAsked: Box) -> DavPeer {
    let file = card + name
    return DavPeer { request in
      if request.method == "GET", request.path.hasSuffix(name), !FileManager.default.fileExists(atPath: file) {
        isAsked.value.store(true, ordering: .relaxed)
        while isAsked.value.load(ordering: .relaxed) { usleep(1000) }
      }
      return nil
    }
  }

  @Test(arguments: ["card/DCIM/", "card/DCIM/B/notes.txt"])
  func theNextPushGivesANameBack(_ source: String) async throws {
    try scratch.photo("card/DCIM/B/notes.txt", seed: 1)
    let before = left
    let isAsked = Box()
    let peer = peerThatWaits(for: "B/notes.txt", isAsked)
    defer { peer.stop() }
    let other = try await killed(peer, isAsked)
    #expect(other.hasPrefix("B/notes.txt.fullbore-"))
    isAsked.value.store(false, ordering: .relaxed)
    let check = try Command(Tool.fullbore, ["check", card, "dav+\(peer.endpoint)"], in: scratch)
    #expect(try await check.wait() == .exited(1), "\(check.output)\(check.errors)")
    #expect((check.output + check.errors).contains("push gives the name back"), "\(check.output)\(check.errors)")
    let push = try Command(Tool.fullbore, ["push", scratch.path(source), "dav+\(peer.endpoint)again/"], in: scratch)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("notes.txt: has its name back, since an interrupted push"), "\(push.errors)")
    #expect(left == before)
    let names = peer.names().map(\.description)
    #expect(names.contains { $0.hasSuffix("notes.txt") } && !names.contains { $0.contains(".fullbore-") }, "\(names)")
  }

  /// Another file has the name by now.
  @Test func anotherFileOfTheNameStays() async throws {
    try scratch.photo("card/DCIM/B/notes.txt", seed: 1)
    let isAsked = Box()
    let peer = peerThatWaits(for: "B/notes.txt", isAsked)
    defer { peer.stop() }
    let other = try await killed(peer, isAsked)
    isAsked.value.store(false, ordering: .relaxed)
    try scratch.photo("card/DCIM/B/notes.txt", seed: 99)
    let names = left
    let push = try Command(Tool.fullbore, ["push", card, "dav+\(peer.endpoint)again/"], in: scratch)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    #expect(push.errors.contains("\(other): is passed over. It is notes.txt"), "\(push.errors)")
    #expect(left == names && names.contains(other) && names.contains("B/notes.txt"))
    #expect(!peer.names().contains { "\($0)".contains(".fullbore-") }, "\(peer.names())")
  }
}

private final class Box: Sendable {
  let value = Atomic(false)
}
