import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Forms with receivers of other projects.
  @Suite(.serialized) struct FormTests {
    let scratch = try! Scratch()

    @Test(.needs(.pythonMultipart, .werkzeug, .aiohttp), arguments: FormReceiver.allCases)
    func receiverTakesAFolder(_ receiver: FormReceiver) async throws {
      for number in 0..<20 { try scratch.file("gallery/IMG \(number).jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/a \"quoted\" Käse 🎬.mov", 100_000)
      // The content ends with bytes that look like the start of a boundary.
      try Data("\r\n--\r\n--fullbore-\r".utf8).write(to: URL(fileURLWithPath: scratch.path("gallery/lines.bin")))
      try scratch.age("gallery/lines.bin")
      try scratch.file("gallery/video.mov", 32 << 20)
      let received = try scratch.folder("received")
      let server = try await receiver.start(into: received, in: scratch)
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery"), "form+\(server.url)/upload", "--field", "upload", "--form", "album=Käse \"1\"",
        "--form", "name={name}", "--expect", "201", "--reply", "$.files[0].url", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)\(server.command.errors)")
      Folder(scratch.path("gallery")).expectSame(as: Folder(received))
      let told = try JSONDecoder().decode(
        [String: String].self, from: Data(contentsOf: URL(fileURLWithPath: scratch.path("fields.json"))))
      #expect(told["album"] == "Käse \"1\"" && told.count == 2)
      #expect(Folder(received).files()[told["name"] ?? ""] != nil)
      #expect(push.peakMemory <= most(40 << 20), "\(push.peakMemory >> 20) MiB")

      let (again, second) = try await fullbore(
        "push", scratch.path("gallery"), "form+\(server.url)/upload", "--field", "upload", "--form",
        "album=Käse \"1\"", "--form", "name={name}", "--expect", "201", "--reply", "$.files[0].url", in: scratch)
      #expect(again == .exited(0) && second.output.contains("done before"), "\(second.output)")
    }

    /// The destination of a file depends on the last path component of the URL, its query and the fields of the form.
    @Test func formsThatDifferInAnythingAreOtherDestinations() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")])
      let url = "form+http://127.0.0.1:\(peer.port)"
      let places = [
        ["\(url)/up1"], ["\(url)/up2"], ["\(url)/q?album=1"], ["\(url)/q?album=2"],
        ["\(url)/q?album=2", "--form", "for=me"], ["\(url)/q?album=2", "--form", "for=you"],
        ["\(url)/up1", "--field", "image"],
      ]
      for count in 1...2 {
        for place in places {
          let push = try Command(Tool.fullbore, ["push", file] + place, in: scratch)
          #expect(try await push.wait() == .exited(0), "\(push.errors)")
          #expect(push.output.contains(count == 1 ? "1 file sent" : "1 done before"), "\(place): \(push.output)")
        }
      }
      #expect(peer.seen.heads.count == places.count)
    }

    /// A resume posts to the same URL as the push, and to no other.
    @Test func aResumeKeepsToItsQueryAndItsFields() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let fields = scratch.path("fields")
      try Data("album=1\n".utf8).write(to: URL(fileURLWithPath: fields))
      for query in ["album=1", "album=2"] {
        let (end, push) = try await fullbore(
          "push", file, "form+\(server.url)nowhere/?\(query)", "--form", "@\(fields)", "--expect", "299", "--retries",
          "0",
          in: scratch)
        #expect(end != .exited(0), "\(push.output)")
      }
      try Data("album=2\n".utf8).write(to: URL(fileURLWithPath: fields))
      let (other, unknown) = try await fullbore("resume", "\(server.url)nowhere/?album=3", in: scratch)
      #expect(other == .exited(2), "\(unknown.output)\(unknown.errors)")
      let (end, resume) = try await fullbore("resume", "\(server.url)nowhere/?album=2", in: scratch)
      #expect(end == .exited(1), "\(resume.output)\(resume.errors)")
      #expect(resume.errors.contains("are not those that the push was begun with"), "\(resume.errors)")
      #expect(!resume.errors.contains("give the URL again"), "\(resume.errors)")
    }

    @Test(.needs(.aiohttp)) func fieldsThatWereTypedAreNotKept() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let received = try scratch.folder("received")
      let server = try await FormReceiver.aiohttp.start(into: received, in: scratch)
      // With the wrong field name, the server accepts nothing.
      let (end, _) = try await fullbore(
        "push", file, "form+\(server.url)/", "--form", "key=s3cr3t", "--retries", "0", in: scratch)
      #expect(end == .exited(1))
      let (resumed, resume) = try await fullbore("resume", in: scratch)
      #expect(resumed != .exited(0) && resume.errors.contains("--form are not kept"), "\(resume.errors)")
      let journal = try Data(contentsOf: URL(fileURLWithPath: scratch.path("journal.sqlite")))
      #expect(journal.range(of: Data("s3cr3t".utf8)) == nil)

      try Data("key=s3cr3t\n".utf8).write(to: URL(fileURLWithPath: scratch.path("fields")))
      let fields = "@" + scratch.path("fields")
      let (failed, _) = try await fullbore(
        "push", file, "form+\(server.url)/", "--form", fields, "--field", "wrong", "--retries", "0", in: scratch)
      #expect(failed == .exited(1))
      let (sent, push) = try await fullbore(
        "push", file, "form+\(server.url)/", "--form", fields, "--field", "upload", in: scratch)
      #expect(sent == .exited(0), "\(push.errors)")
      #expect(try String(contentsOfFile: scratch.path("fields.json"), encoding: .utf8).contains("s3cr3t"))
    }

    /// A form contains the file's own name, without its parent folders.
    @Test(arguments: [false, true]) func filesOfSubfoldersAreReadBack(_ asksReply: Bool) async throws {
      try scratch.file("gallery/a.jpg", 1000)
      try scratch.file("gallery/2026/May/b.jpg", 2000)
      let server = try await ServeProcess.start(in: scratch)
      let options = ["--verify"] + (asksReply ? ["--reply", "$.files[0].url"] : [])
      for check in [[], ["--check"]] {
        let push = try Command(
          Tool.fullbore, ["push", scratch.path("gallery") + "/", "form+\(server.url)"] + options + check, in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        #expect(check.isEmpty || push.output.contains("2 done before"), "\(push.output)\(push.errors)")
      }
    }

    /// Two files of different folders have the same name in a form, unless a field has their path.
    @Test(arguments: [false, true], [["--overwrite"], []])
    func filesOfOneNameInTwoFoldersAreNotLost(_ namesPath: Bool, _ options: [String]) async throws {
      try scratch.file("gallery/1/IMG.JPG", 1000)
      try scratch.file("gallery/2/IMG.JPG", 2000)
      let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")])
      let fields = namesPath ? ["--form", "folder={path}"] : []
      let words = ["push"] + options + fields + [scratch.path("gallery/"), "form+http://127.0.0.1:\(peer.port)/up"]
      let dry = try Command(Tool.fullbore, words + ["--dry-run"], in: scratch)
      #expect(try await dry.wait() == .exited(namesPath ? 0 : 1), "\(dry.output)\(dry.errors)")
      for round in 1...2 {
        let push = try Command(Tool.fullbore, words, in: scratch)
        #expect(try await push.wait() == .exited(namesPath ? 0 : 1), "\(push.output)\(push.errors)")
        if namesPath { continue }
        for folder in ["1", "2"] { #expect(push.errors.contains("gallery/\(folder)/IMG.JPG"), "\(push.errors)") }
        #expect(push.errors.contains("{path}") && !push.errors.contains("--layout"), "round \(round): \(push.errors)")
      }
      #expect(peer.seen.heads.count == (namesPath ? 2 : 1))
    }

    @Test func verifyOfAFormWithoutAReplyIsRefusedBeforeAnythingIsSent() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--verify", file, "form+\(server.url)upload", in: scratch)
      #expect(end == .exited(2) && push.errors.contains("--reply"), "\(push.errors)")
    }

    @Test func formIsNotSpokenByAServerOfFiles() async throws {
      let file = try scratch.file("a.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", file, "form+\(server.url)nowhere/x?y", "--expect", "299", in: scratch)
      #expect(end != .exited(0) && !push.errors.isEmpty)
    }
  }
}
