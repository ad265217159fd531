import BlobTesting
import TestSupport
import Foundation
import Testing

// What an incomplete push leaves for others.
extension EndToEnd.ResumeTests {
  /// The server may have a separate file tree for each user at that URL.
  @Test func aPushOfAnotherUserDoesNotEndAnIncompleteOne() async throws {
    let server = try await ServeProcess.start(in: scratch)
    let place = scratch.path("card/a.jpg")
    let (anna, bob) = (try scratch.netrc(of: "anna"), try scratch.netrc(of: "bob"))
    #expect(try await fullbore("push", "--netrc-file", anna, place, server.url, in: scratch).end == .exited(1))
    try scratch.file("card/a.jpg", 1000)
    #expect(try await fullbore("push", "--netrc-file", bob, place, server.url, in: scratch).end == .exited(0))
    let (end, resume) = try await fullbore("resume", in: scratch)
    #expect(end == .exited(1) && resume.errors.contains("run that push again"), "\(resume.errors)")
    #expect(try await fullbore("push", "--netrc-file", anna, place, server.url, in: scratch).end == .exited(0))
    #expect(try await fullbore("resume", in: scratch).end == .exited(0))
  }

  @Test func theQueryOfADestinationIsKeptNowhere() async throws {
    let server = try await ServeProcess.start(in: scratch)
    let file = try scratch.file("gallery/a.mov", 12 << 20)
    let place = "tus+\(server.url)?sig=planted-signature"
    let push = try Command.fullbore("push", "--json", "--bwlimit", "8M", file, place, in: scratch)
    try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
    push.kill(SIGKILL)
    try await push.wait()
    let (end, resume) = try await fullbore("resume", in: scratch)
    #expect(end == .exited(1), "\(resume.output)\(resume.errors)")
    #expect(resume.errors.contains("give the URL again"), "\(resume.errors)")
    let status = try await fullbore("status", "--json", in: scratch).command
    for text in [push.output, push.errors, resume.errors, status.output] {
      #expect(!text.contains("planted-signature"), "\(text)")
    }
    for suffix in ["", "-wal"] {
      let bytes = FileManager.default.contents(atPath: scratch.path("journal.sqlite\(suffix)")) ?? Data()
      #expect(bytes.range(of: Data("planted-signature".utf8)) == nil)
    }
    let (done, whole) = try await fullbore("resume", place, in: scratch)
    #expect(done == .exited(0), "\(whole.output)\(whole.errors)")
    Folder(scratch.path("gallery")).expectSame(as: server.folder)
  }
}
