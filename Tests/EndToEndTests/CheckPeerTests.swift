import BlobCrypto
import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Synchronization
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore check` with WebDAV and S3 servers, which tell less than Fullbore's own.
  @Suite(.serialized) struct CheckPeerTests {
    let scratch = try! Scratch()
    private var card: String { scratch.path("card/DCIM/") }

    private func makeCard(_ count: Int) throws {
      for number in 0..<count { try scratch.photo("card/DCIM/A/IMG_\(number).JPG", seed: UInt64(number)) }
    }

    private func bytes(_ name: String) -> [UInt8] {
      FileManager.default.contents(atPath: scratch.path("card/DCIM/\(name)")).map { Array($0) } ?? []
    }

    @Test func sizesProveNothing() async throws {
      try makeCard(3)
      let peer = DavPeer()
      let url = "dav+\(peer.endpoint)"
      _ = try await fullbore("push", card, url, in: scratch)
      peer.publish([1], as: "A/old.JPG")
      let sizes = try await CheckRun(scratch, card, url)
      #expect(sizes.end == .exited(1))
      #expect(sizes.paths(.same, by: "length").count == 3)
      #expect(sizes.paths(.extra) == ["A/old.JPG"])
      #expect(sizes.sentence.contains("only their sizes were compared") && !sizes.sentence.contains("safe"))
      #expect(
        sizes.sentence.contains("'fullbore check \(card) \(url) --download' reads them back"), "\(sizes.sentence)")
      // The same command with --download proves it, and this stays proved.
      #expect(try await CheckRun(scratch, card, url, "--download").end == .exited(0))
      let gets = peer.requests.filter { $0.hasPrefix("GET") }.count
      let again = try await CheckRun(scratch, card, url)
      #expect(again.end == .exited(0) && again.paths(.same, before: true, by: "bytes").count == 3)
      #expect(peer.requests.filter { $0.hasPrefix("GET") }.count == gets)
    }

    @Test func otherBytesOfTheSameLengthAreFoundByReadingBack() async throws {
      try makeCard(2)
      let peer = DavPeer()
      let url = "dav+\(peer.endpoint)"
      _ = try await fullbore("push", card, url, in: scratch)
      #expect(try await CheckRun(scratch, "--download", card, url).end == .exited(0))
      var other = bytes("A/IMG_1.JPG")
      other[other.count - 1] ^= 1
      peer.publish(other, as: "A/IMG_1.JPG")
      let events = try await CheckRun(scratch, "--download", card, url)
      #expect(events.end == .exited(1) && events.paths(.different) == ["A/IMG_1.JPG"])
      #expect(events.paths(.same, before: true) == ["A/IMG_0.JPG"])
    }

    /// The server answers each request with another ETag: nothing stays compared, and nothing is taken for changed.
    @Test func anETagThatAlwaysChangesIsNoProof() async throws {
      try makeCard(2)
      let number = Atomic(0)
      let store = Mutex<DavPeer?>(nil)
      let peer = DavPeer { request in
        guard request.method == "HEAD",
          let bytes = store.withLock({ $0 })?.contents(of: BytePath(request.path.dropFirst().utf8))
        else { return nil }
        return .init(200, ["ETag": "\"\(number.add(1, ordering: .relaxed).newValue)\""], bytes)
      }
      let url = "dav+\(peer.endpoint)"
      _ = try await fullbore("push", card, url, in: scratch)
      store.withLock { $0 = peer }
      defer { store.withLock { $0 = nil } }
      for _ in 0..<2 {
        let events = try await CheckRun(scratch, "--download", card, url)
        #expect(events.end == .exited(0) && events.paths(.same, before: false, by: "bytes").count == 2)
      }
    }

    /// Nextcloud keeps the checksum that the sending program has told.
    @Test func nextcloudsChecksumsAreCompared() async throws {
      try makeCard(2)
      let sums = ["/A/IMG_0.JPG", "/A/IMG_1.JPG"].map { "SHA1:\(Digest.hex(of: bytes(String($0.dropFirst())), .sha1))" }
      let peer = NextcloudPeer { request in
        guard request.method == "PROPFIND", String(decoding: request.body, as: UTF8.self).contains("checksums") else {
          return nil
        }
        // Both files have the checksum of the first one.
        let text =
          "<?xml version=\"1.0\"?><d:multistatus xmlns:d=\"DAV:\" xmlns:oc=\"http://owncloud.org/ns\"><d:response>"
          + "<d:href>\(request.path)</d:href><d:propstat><d:prop><oc:checksums><oc:checksum>\(sums[0]) MD5:00</oc:checksum>"
          + "</oc:checksums></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>"
        return .init(207, ["Content-Type": "application/xml"], Array(text.utf8))
      }
      let url = "dav+\(peer.endpoint)"
      _ = try await fullbore("push", card, url, in: scratch)
      let events = try await CheckRun(scratch, card, url)
      #expect(events.paths(.same, by: "digest") == ["A/IMG_0.JPG"])
      #expect(events.paths(.different) == ["A/IMG_1.JPG"])
      // A checksum that is only repeated proves nothing about what is stored.
      let file = scratch.path("card/DCIM/A/IMG_0.JPG")
      let (kept, unread) = try await fullbore("push", "--delete-after-verify", file, url + "A/", in: scratch)
      #expect(kept == .exited(1) && unread.errors.contains("--verify reads it back"), "\(unread.errors)")
      #expect(FileManager.default.fileExists(atPath: file))
      let (removed, read) = try await fullbore(
        "push", "--delete-after-verify", "--verify", file, url + "A/", in: scratch)
      #expect(removed == .exited(0) && !FileManager.default.fileExists(atPath: file), "\(read.errors)")
    }

    /// After SIGKILL the check goes on where it was; Ctrl-C has its own status.
    @Test func anInterruptedCheckGoesOn() async throws {
      try makeCard(200)
      let gets = Atomic(0)
      let isStopped = Atomic(false)
      let peer = DavPeer { request in
        guard request.method == "GET", gets.add(1, ordering: .relaxed).newValue > 120 else { return nil }
        while isStopped.load(ordering: .relaxed) { usleep(1000) }
        return nil
      }
      let url = "dav+\(peer.endpoint)"
      _ = try await fullbore("push", card, url, in: scratch)
      for signal in [SIGKILL, SIGINT] {
        gets.store(signal == SIGKILL ? 0 : 60, ordering: .relaxed)
        isStopped.store(true, ordering: .relaxed)
        let check = try Command.fullbore("check", "--json", "--download", card, url, in: scratch)
        try await until("all files but those that hang are compared") {
          gets.load(ordering: .relaxed) > 120 && check.output.contains("\"compared_before\"") ? true : nil
        }
        check.kill(signal)
        let end = try await check.wait()
        isStopped.store(false, ordering: .relaxed)
        #expect(end == (signal == SIGKILL ? .killed(by: SIGKILL) : .exited(130)), "\(check.output.suffix(500))")
        if signal == SIGINT {
          #expect(try CheckRun.events(in: check.output).last?["interrupted"] as? Bool == true)
        }
      }
      gets.store(-1000, ordering: .relaxed)
      let rest = try await CheckRun(scratch, "--download", card, url)
      #expect(rest.end == .exited(0), "\(rest.sentence)")
      let before = rest.paths(.same, before: true).count
      #expect(before >= 64 && before < 200, "\(before)")
    }

    @Test(arguments: [true, false]) func objectsAreComparedByTheirChecksums(_ knowsChecksums: Bool) async throws {
      try makeCard(3)
      try scratch.file("card/DCIM/A/film.mov", 12 << 20)
      var options = S3Peer.Options()
      options.knowsChecksums = knowsChecksums
      let peer = S3Peer(options)
      let endpoint = "http://127.0.0.1:\(peer.port)"
      let place = ["--endpoint", endpoint, card, "s3://media/in/"]
      let push = try Command(Tool.fullbore, ["push"] + place, in: scratch, environment: S3Peer.environment)
      try #require(try await push.wait() == .exited(0), "\(push.errors)")
      peer.change { $0.objects["in/A/other.JPG"] = S3PeerObject(bytes: [1], tag: "\"1\"") }
      let events = try await CheckRun(
        scratch, environment: S3Peer.environment, "--endpoint", endpoint, card, "s3://media/in/")
      #expect(events.end == .exited(0), "\(events.sentence)")
      #expect(events.paths(.same, by: "digest").count == 4)
      #expect(events.paths(.extra) == ["A/other.JPG"])
    }

    /// The server changes the bytes and goes on to tell the ETag of the old ones. Only reading back finds that. An ETag that
    /// is none of the bytes' says nothing: the object is read.
    @Test func aServerThatLiesAboutItsETagIsFoundByReadingBack() async throws {
      try makeCard(3)
      var options = S3Peer.Options()
      options.knowsChecksums = false
      let peer = S3Peer(options)
      let endpoint = "http://127.0.0.1:\(peer.port)"
      let push = try Command(
        Tool.fullbore, ["push", "--endpoint", endpoint, card, "s3://media/in/"], in: scratch,
        environment: S3Peer.environment)
      try #require(try await push.wait() == .exited(0), "\(push.errors)")
      peer.change { state in
        state.objects["in/A/IMG_0.JPG"]?.bytes[5] ^= 1
        state.objects["in/A/IMG_1.JPG"]?.tag = "\"00000000000000000000000000000000\""
      }
      func check(_ more: String...) async throws -> CheckRun {
        let command = try Command(
          Tool.fullbore, ["check", "--json", "--endpoint", endpoint, card, "s3://media/in/"] + more, in: scratch,
          environment: S3Peer.environment)
        return try CheckRun(command, try await command.wait())
      }
      let believed = try await check()
      #expect(believed.end == .exited(0) && believed.paths(.same, by: "digest").count == 3)
      let read = try await check("--download")
      #expect(read.end == .exited(1) && read.paths(.different) == ["A/IMG_0.JPG"])
      #expect(read.paths(.same, by: "bytes") == ["A/IMG_1.JPG", "A/IMG_2.JPG"])
    }
  }
}

extension CheckRun {
  init(_ command: Command, _ end: Command.End) throws {
    self.end = end
    events = try Self.events(in: command.output)
  }
}
