import Foundation
import Testing

extension EndToEnd {
  /// One destination, whose URL is written in two ways.
  @Suite(.serialized) struct SpellingTests {
    let scratch = try! Scratch()

    @Test(
      arguments: ["put+", "tus+", "resumable+"],
      [("localhost", "a", "LocalHost", "a"), ("localhost", "~%C3%BC", "localhost", "%7e%c3%bc")])
    func aFileReplacedUnderAnotherSpellingOfTheURLIsSentAgain(
      _ uploadProtocol: String, _ urls: (String, String, String, String)
    )
      async throws
    {
      let x = try scratch.file("x/a.jpg", 3000, seed: 1)
      let y = try scratch.file("y/a.jpg", 3001, seed: 2)
      let server = try await ServeProcess.start(in: scratch)
      let one = "\(uploadProtocol)http://\(urls.0):\(server.port)/\(urls.1)/"
      let other = "\(uploadProtocol)http://\(urls.2):\(server.port)/\(urls.3)/"
      for (arguments, word) in [
        ([x, one], "1 file sent"), ([x, other], "done before"), (["--overwrite", y, other], "1 file sent"),
        (["--overwrite", x, one], "1 file sent"), (["--overwrite", x, other], "done before"),
      ] {
        let push = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        #expect(push.output.contains(word), "\(arguments): \(push.output)")
      }
      #expect(server.folder.files().values.map { $0 } == [3000])
    }

    @Test func aResumeKnowsThePlaceByItsOtherURL() async throws {
      let file = try scratch.file("gallery/video.mov", 12 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore(
        "push", "--bwlimit", "4M", file, "tus+http://localhost:\(server.port)/~a/", in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      let (end, resume) = try await fullbore(
        "resume", "--json", "http://LOCALHOST:\(server.port)/%7ea/", in: scratch)
      #expect(end == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(!resume.output.contains("\"resumed_from\":0"), "\(resume.output)")
      #expect(server.folder.files().values.map { $0 } == [12 << 20])
    }
  }
}
