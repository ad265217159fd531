import BlobTesting
import BlobUpload
import Blobs
import Foundation
import TestSupport
import Testing

// Indexes that are lost after they were sent, and those that cannot be sent or read.
extension EndToEnd.SealNamesTests {
  enum Damage: CaseIterable { case isGone, isChanged }

  @Test(arguments: Damage.allCases) func aLostIndexIsFoundAndSentAgain(_ damage: Damage) async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    let seal = ["--seal", key.recipient, "--seal-names"]
    let (end, first) = try await run(["push"] + seal + [card, server.url])
    #expect(end == .exited(0), "\(first.errors)")
    let (safe, check) = try await run(["check"] + seal + [card, server.url])
    #expect(safe == .exited(0) && check.output.contains("It is safe"), "\(check.output)\(check.errors)")
    let (forgotten, plain) = try await run(["check", card, server.url])
    #expect(forgotten == .exited(1) && plain.output.contains("--seal RECIPIENT --seal-names"), "\(plain.output)")
    let path = server.folder.path + "/" + (try #require(indexes(in: server.folder.files().keys).first))
    switch damage {
    case .isGone: try FileManager.default.removeItem(atPath: path)
    case .isChanged:
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: URL(fileURLWithPath: path))
    }
    let (unsafe, second) = try await run(["check"] + seal + [card, server.url])
    #expect(unsafe == .exited(1), "\(second.output)\(second.errors)")
    #expect(second.errors.contains("no index of this journal tells what 4 files"), "\(second.errors)")
    // `check` has noted it, so that the next push of any kind would send it. Here it is found by `push --check` itself.
    let (sent, again) = try await run(["push", "--check"] + seal + [card, server.url])
    #expect(sent == .exited(0) && again.output.contains("0 files sent"), "\(again.output)\(again.errors)")
    // The new index has the place of the lost one, which nobody needs to delete.
    #expect(indexes(in: server.folder.files().keys).map { "\(server.folder.path)/\($0)" } == [path])
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    expectRestored()
  }

  /// The names arrive under another name.
  @Test func aLostIndexThatCannotBeReplacedHasAnotherBesideIt() async throws {
    let key = try await makeKey()
    try makeTree()
    let lost = Monitor("")
    var settings = S3Peer.Options()
    settings.refuse = { _, request in
      let name = lost.update { $0 }
      return request.method == "PUT" && !name.isEmpty && request.path.hasSuffix(name) ? (403, "AccessDenied") : nil
    }
    let s3 = S3Peer(settings)
    let push =
      ["push", "--check", "--seal", key.recipient, "--seal-names", "--endpoint", "http://127.0.0.1:\(s3.port)"]
      + [card, "s3://media/in/"]
    #expect(try await run(push).end == .exited(0))
    let index = try #require(indexes(in: s3.objects.keys).first)
    lost.update { $0 = index }
    s3.change { $0.objects[index] = nil }
    let (end, again) = try await run(push)
    #expect(end == .exited(0), "\(again.output)\(again.errors)")
    let names = indexes(in: s3.objects.keys)
    #expect(names.count == 1 && names != [index], "\(names)")
    #expect(s3.requests.count { $0.hasPrefix("PUT ") && $0.contains(index) } == 2, "it was tried")
  }

  @Test func nothingIsDeletedWithoutItsName() async throws {
    let key = try await makeKey()
    try makeTree()
    let before = Folder(scratch.path("card")).files()
    let server = try await ServeProcess.start(in: scratch)
    let push = ["push", "--seal", key.recipient, "--seal-names"]
    _ = try await run(push + [card, server.url])
    let index = try #require(indexes(in: server.folder.files().keys).first)
    try FileManager.default.removeItem(atPath: server.folder.path + "/" + index)
    let (end, second) = try await run(push + ["--delete-after-verify", card, server.url])
    #expect(end == .exited(0) && Folder(scratch.path("card")).files().isEmpty, "\(second.output)\(second.errors)")
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    #expect(Folder(restored).files() == before)
  }

  /// A name of 255 bytes, which has more of them with `.age`, and a folder that is that of `unseal` itself.
  @Test func aNameThatCannotBeGivenTakesNoOther() async throws {
    let key = try await makeKey()
    try makeTree()
    let long = String(repeating: "ü", count: 127) + "a"
    try scratch.file("card/\(long)", 10)
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    _ = try await expect(0, "unseal", server.url, restored, "-i", key.file)
    expectRestored()
    try scratch.file("card/.fullbore-unseal/record", 10)
    _ = try await expect(0, "push", "--hidden", "--seal", key.recipient, "--seal-names", card, server.url)
    let other = scratch.path("other")
    let unseal = try await expect(1, "unseal", server.url, other, "-i", key.file)
    #expect(
      unseal.errors.contains("1 name that no file here can have, like .fullbore-unseal/record"), "\(unseal.errors)")
    #expect(unseal.output.contains("5 files restored"), "\(unseal.output)")
    #expect(Folder(other).files()[long] == 10)
  }

  @Test(arguments: ["", "new/folder/"]) func aPushWithAnIdentityBeginsAFolder(_ folder: String) async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    let push = try await expect(
      0, "push", "--seal", key.recipient, "--seal-names", "--identity", key.file, card, server.url + folder)
    #expect(push.output.contains("4 files sent"), "\(push.output)")
  }

  /// Neither nginx nor Google lists its files. A new key is made only where no identity was to read the one that is there.
  @Test func aServerThatListsNoFilesIsNotTakenForOneWithoutAKey() async throws {
    let key = try await makeKey()
    try makeTree()
    let stored = Monitor<[String: [UInt8]]>([:])
    let peer = HTTPPeer { request in
      switch request.method {
      case "PUT":
        stored.update { $0[request.path] = request.body }
        return .init(201)
      case "GET", "HEAD":
        if let body = stored.update({ $0[request.path] }) { return .init(200, [:], body) }
        return .init(request.path.hasSuffix("/") ? 403 : 404)
      default: return .init(405, ["Allow": "GET, HEAD, PUT"])
      }
    }
    let (push, target) = (["push", "--seal", key.recipient, "--seal-names"], [card, "put+\(peer.url.text)in/"])
    let (end, refused) = try await run(push + ["--identity", key.file] + target)
    #expect(end == .exited(1), "\(refused.output)\(refused.errors)")
    #expect(
      refused.errors.contains("does not list this folder") && refused.errors.contains("leave --identity out"),
      "\(refused.errors)")
    #expect(stored.update { $0.isEmpty })
    let (sent, first) = try await run(push + target)
    #expect(sent == .exited(0) && first.errors.contains("a new key of the names"), "\(first.output)\(first.errors)")
    let (unknown, check) = try await run(
      ["check"] + Array(push.dropFirst()) + ["--identity", key.file] + target, journal: "new.sqlite")
    #expect(unknown == .exited(1) && check.errors.contains("with --journal"), "\(check.output)\(check.errors)")
    #expect(!check.errors.contains("give --identity"), "\(check.errors)")
  }

  /// Everyone who has the public key can put an index there, with a key of the names that he knows.
  @Test func anIndexWithAnotherKeyIsNotBelieved() async throws {
    let key = try await makeKey()
    try makeTree()
    let server = try await ServeProcess.start(in: scratch)
    _ = try await expect(0, "push", "--seal", key.recipient, "--seal-names", card, server.url)
    let names = server.folder.files()
    let plain = scratch.path("plain")
    try "fullbore-names 1\nkey \(String(repeating: "07", count: 32))\nwritten 1\n".write(
      toFile: plain, atomically: true, encoding: .utf8)
    let strange = "\(server.folder.path)/fullbore-index-\(String(repeating: "a", count: 26)).age"
    let age = try Command(
      try #require(Peer.age.path, Peer.age.reason), ["-r", key.recipient, "-o", strange, plain], in: scratch)
    #expect(try await age.wait() == .exited(0), "\(age.errors)")
    let (end, push) = try await run(
      ["push", "--seal", key.recipient, "--seal-names", "--identity", key.file, card, server.url], journal: "other.db")
    #expect(end == .exited(1) && push.errors.contains("have two keys"), "\(push.errors)")
    #expect(server.folder.files().count == names.count + 1)
  }

  /// The files wait for their names, and do not get opaque ones.
  @Test func anIndexThatCannotBeReadNowIsWaitedFor() async throws {
    let key = try await makeKey()
    try makeTree()
    let isShut = Monitor(true)
    var settings = S3Peer.Options()
    settings.refuse = { _, request in
      let isIndex = request.method == "GET" && request.path.contains("fullbore-index-")
      return isIndex && isShut.update({ $0 }) ? (403, "AccessDenied") : nil
    }
    let s3 = S3Peer(settings)
    let options = ["--endpoint", "http://127.0.0.1:\(s3.port)"]
    _ = try await run(["push", "--seal", key.recipient, "--seal-names"] + options + [card, "s3://media/in/"])
    let unseal = ["unseal"] + options + ["s3://media/in/", restored, "-i", key.file]
    let (end, first) = try await run(unseal)
    #expect(end == .exited(1), "\(first.output)\(first.errors)")
    #expect(Folder(restored).restored().isEmpty)
    isShut.update { $0 = false }
    let (again, second) = try await run(unseal)
    #expect(again == .exited(0), "\(second.output)\(second.errors)")
    expectRestored()
  }
}
