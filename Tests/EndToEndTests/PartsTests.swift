import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// One large file is sent in several parts at once, to servers that can join parts.
  @Suite(.serialized) struct PartsTests {
    let scratch = try! Scratch()

    private func peer(_ received: String, _ options: [String] = []) async throws -> PeerServer {
      try await PeerServer.resumableUpload(into: received, options, in: scratch)
    }

    @Test(.needs(.resumableUpload)) func aLargeFileArrivesInPartsAtATusServer() async throws {
      try scratch.file("gallery/video.mov", (24 << 20) + 1)
      let received = Folder(try scratch.folder("received"))
      let peer = try await peer(received.path)
      let proxy = ChaosProxy(to: try #require(URL(string: peer.url)?.port))
      let (end, push) = try await fullbore(
        "push", "--parts-at-once", "4", scratch.path("gallery/"), "tus+http://127.0.0.1:\(proxy.port)/files",
        in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      // The folder contains only this file: the parts are deleted once they are joined.
      Folder(scratch.path("gallery")).expectSameContents(in: received)
      #expect(proxy.counters.connections >= 4)
    }

    /// Each part resumes from its own offset. This server stores a request's body only once it has all of it.
    @Test(.needs(.resumableUpload)) func aKilledPushFindsEveryPart() async throws {
      let size = 24 << 20
      let file = try scratch.file("gallery/video.mov", size)
      let received = Folder(try scratch.folder("received"))
      let peer = try await peer(received.path)
      let proxy = ChaosProxy(to: try #require(URL(string: peer.url)?.port))
      let place = "tus+http://127.0.0.1:\(proxy.port)/files"
      for kill in 1...3 {
        let push = try Command.fullbore(
          "push", "--parts-at-once", "4", "--part-size", "512K", "--bwlimit", "12M", file, place, in: scratch)
        let wanted = received.received() + 4 << 20
        try await until("more has arrived before kill \(kill)") {
          if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
          return received.received() >= wanted ? true : nil
        }
        push.kill(SIGKILL)
        #expect(try await push.wait() == .killed(by: SIGKILL))
      }
      let (end, push) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      // If a part's creation had no response before a kill, an empty part stays at the server.
      let there = received.files().filter { $0.value > 0 }.keys
      #expect(there.count == 1)
      for name in there {
        #expect(FileManager.default.contentsEqual(atPath: file, andPath: "\(received.path)/\(name)"))
      }
      // For each of four parts, the bytes in flight at each of three kills, and some bytes for the heads of requests.
      let most = size + 3 * 4 * (512 << 10) + 1 << 20
      #expect(proxy.counters.bytesUp <= most, "\(proxy.counters.bytesUp) bytes sent for \(size)")
    }

    /// Fullbore's own server keeps the received bytes of each body; the client or the server is killed.
    @Test func killsOfEitherEndLoseNothingInParts() async throws {
      let size = 32 << 20
      let file = try scratch.file("gallery/video.mov", size)
      var server = try await ServeProcess.start(in: scratch)
      func push() throws -> Command {
        try Command.fullbore("push", "--parts-at-once", "4", "--bwlimit", "16M", file, "tus+" + server.url, in: scratch)
      }
      var command = try push()
      var held = 0
      for number in 1...6 {
        let wanted = held + 3 << 20
        try await until("more has arrived before kill \(number): \(command.errors)") { [server] in
          if let end = command.end { throw Command.Failure("the push ended: \(end) \(command.errors)") }
          return server.folder.unfinished() >= wanted ? true : nil
        }
        if number.isMultiple(of: 2) {
          server.command.kill(SIGKILL)
          try await server.command.wait()
          held = server.folder.unfinished()
          server = try await server.startAgain(in: scratch)
        } else {
          command.kill(SIGKILL)
          try await command.wait()
          held = try await server.folder.settled()
          command = try push()
        }
        #expect(server.folder.files().isEmpty, "a part of it has a name")
      }
      #expect(try await command.wait() == .exited(0), "\(command.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(server.folder.unfinished() == 0)
      let (_, status) = try await fullbore("status", "--json", in: scratch)
      #expect(!status.output.contains(#""event":"file""#), "\(status.output)")
    }

    @Test(.needs(.resumableUpload)) func givingUpDeletesEveryPart() async throws {
      let file = try scratch.file("gallery/video.mov", 24 << 20)
      let received = Folder(try scratch.folder("received"))
      let peer = try await peer(received.path)
      let push = try Command.fullbore(
        "push", "--parts-at-once", "4", "--part-size", "512K", "--bwlimit", "12M", file, "tus+\(peer.url)/files",
        in: scratch)
      try await until("some has arrived") {
        if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
        return received.received() >= 6 << 20 ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
      #expect(received.files().count >= 2)
      let (end, abort) = try await fullbore("abort", "--all", in: scratch)
      #expect(end == .exited(0), "\(abort.errors)")
      // A part whose creation had no response before the kill has no URL in the journal. It is empty, and expires at
      // the server.
      #expect(received.received() == 0, "\(received.files())")
    }

    /// The server does not support concatenation, so the file is sent in one piece.
    @Test(.needs(.resumableUpload)) func withoutConcatenationItGoesInOnePiece() async throws {
      try scratch.file("gallery/video.mov", 20 << 20)
      let received = Folder(try scratch.folder("received"))
      let peer = try await peer(received.path, ["--disable-concatenation"])
      let (end, push) = try await fullbore(
        "push", "--parts-at-once", "4", scratch.path("gallery/"), "tus+\(peer.url)/files", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSameContents(in: received)
    }
  }
}
