import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Sends from a URL to a destination without the disk.
  @Suite(.serialized) struct URLSourceTests {
    let scratch = try! Scratch()

    @Test(.needs(.nginx), arguments: ["put+", "tus+", "resumable+"])
    func fileAtAURLIsSentOn(_ uploadProtocol: String) async throws {
      try scratch.file("films/a b.mov", 48 << 20)
      try scratch.file("films/small.jpg", 1000)
      try scratch.file("films/empty.txt", 0)
      let films = Folder(scratch.path("films"))
      let nginx = try await PeerServer.nginx(into: films.path, in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      // A file over 1 MiB would kill the process.
      let push = try Command(
        "bash",
        [
          "-c", "ulimit -f 1024; exec \"$0\" \"$@\"", Tool.fullbore, "push", "\(nginx.url)/a%20b.mov",
          "\(nginx.url)/small.jpg", "\(nginx.url)/empty.txt", uploadProtocol + server.url,
        ], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      films.expectSame(as: server.folder)
      #expect(push.peakMemory <= most(40 << 20), "\(push.peakMemory >> 20) MiB")

      let (again, second) = try await fullbore(
        "push", "\(nginx.url)/a%20b.mov", uploadProtocol + server.url, in: scratch)
      #expect(again == .exited(0) && second.output.contains("done before"), "\(second.output)")
    }

    @Test(.needs(.nginx)) func killedPushGoesOnWhereItStopped() async throws {
      try scratch.file("films/video.mov", 24 << 20)
      let films = Folder(scratch.path("films"))
      let nginx = try await PeerServer.nginx(into: films.path, in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--bwlimit", "8M", "\(nginx.url)/video.mov", "tus+\(server.url)", in: scratch)
      try await until("more has arrived") { server.folder.received() > 6 << 20 || push.end != nil ? true : nil }
      push.kill(SIGKILL)
      #expect(try await push.wait() == .killed(by: SIGKILL))
      let (end, resume) = try await fullbore("resume", "--json", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      films.expectSame(as: server.folder)
      #expect(!resume.output.contains("\"resumed_from\":0"), "\(resume.output)")
    }

    /// Each file is a download that starts when its length is requested, and only one connection is allowed at a time.
    @Test(.needs(.nginx)) func serverWithoutRangesIsReadOnceEach() async throws {
      for number in 0..<24 { try scratch.file("films/\(number).mov", 3 << 20, seed: UInt64(number)) }
      let films = Folder(scratch.path("films"))
      let nginx = try await PeerServer.nginx(into: films.path, rules: "max_ranges 0;", in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      let urls = films.files().keys.map { "\(nginx.url)/\($0)" }
      let push = try Command(
        Tool.fullbore, ["push", "--jobs", "1"] + urls + ["put+\(server.url)"], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      films.expectSame(as: server.folder)
    }

    @Test(.needs(.nginx), arguments: ["put+", "tus+", "resumable+"])
    func aDownloadThatIsReadOnceIsVerified(_ uploadProtocol: String) async throws {
      try scratch.file("films/video.mov", 3 << 20)
      let films = Folder(scratch.path("films"))
      let nginx = try await PeerServer.nginx(into: films.path, rules: "max_ranges 0;", in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      for word in ["1 file sent", "done before", "already there"] {
        let options = word == "already there" ? ["--overwrite"] : []
        let push = try Command(
          Tool.fullbore, ["push", "--verify"] + options + ["\(nginx.url)/video.mov", uploadProtocol + server.url],
          in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        #expect(push.output.contains(word) || word == "already there", "\(push.output)")
      }
      films.expectSame(as: server.folder)
      let (end, check) = try await fullbore("check", "\(nginx.url)/video.mov", server.url, in: scratch)
      #expect(end == .exited(0), "\(check.output)\(check.errors)")
    }

    @Test(.needs(.nginx)) func queryOfAURLIsNotKept() async throws {
      try scratch.file("films/video.mov", 100_000)
      let nginx = try await PeerServer.nginx(into: scratch.path("films"), in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "\(nginx.url)/video.mov?key=s3cr3t", server.url, in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      #expect(server.folder.files() == ["video.mov": 100_000])
      for name in ["journal.sqlite", "journal.sqlite-wal"] {
        let kept = try? Data(contentsOf: URL(fileURLWithPath: scratch.path(name)))
        #expect(kept?.range(of: Data("s3cr3t".utf8)) == nil)
      }
      #expect(!(push.output + push.errors).contains("s3cr3t"))
    }

    @Test func serversThatNeverAnswerHoldUpNoOther() async throws {
      let silent = ScriptedPeer([.readRequest, .hold])
      let peer = HTTPPeer { _ in .init(200, [:], [UInt8](repeating: 7, count: 1000)) }
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("last.jpg", 1000)
      let lost = (0..<20).map { "http://127.0.0.1:\(silent.port)/silent\($0).jpg" }
      let found = (0..<4).map { "http://127.0.0.1:\(peer.port)/\($0).jpg" }
      let push = try Command(
        Tool.fullbore, ["push", "--retries", "0"] + lost + found + [file, server.url], in: scratch)
      // Waiting for one of the silent servers alone would take longer than that.
      try await until("the others have arrived", .seconds(20)) { server.folder.files().count == 5 ? true : nil }
      #expect(push.end == nil, "\(push.output)\(push.errors)")
      silent.release()
      #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
      for url in lost { #expect(push.errors.contains("\(url): "), "\(push.errors)") }
      #expect(push.output.contains("5 files sent") && push.output.contains("20 failed"), "\(push.output)")
    }

    @Test(.needs(.nginx)) func aMissingURLIsNamedAndTheOthersAreSent() async throws {
      try scratch.file("films/video.mov", 100_000)
      let nginx = try await PeerServer.nginx(into: scratch.path("films"), in: scratch)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "\(nginx.url)/nothing.mov", "\(nginx.url)/video.mov", server.url, in: scratch)
      #expect(end == .exited(1) && push.errors.contains("404"), "\(push.errors)")
      #expect(server.folder.files() == ["video.mov": 100_000])
    }
  }
}
