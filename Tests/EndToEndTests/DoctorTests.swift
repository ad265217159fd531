import Foundation
import Testing

extension EndToEnd {
  /// `fullbore doctor` with proxies of other projects that are configured wrongly on purpose.
  @Suite(.serialized) struct DoctorTests {
    /// Every mistake in the configuration of each proxy that is installed. Some at a time, since they mostly wait.
    @Test(
      .enabled(if: DoctorFront.allCases.contains { $0.path != nil }, "no proxy is installed: scripts/bootstrap test"))
    func findsWhatIsWrong() async throws {
      let (here, missing) = (
        DoctorFront.allCases.filter { $0.path != nil }, DoctorFront.allCases.filter { $0.path == nil }
      )
      if !missing.isEmpty {
        print(
          "doctor: without \(missing.map(\.rawValue).joined(separator: ", ")): scripts/bootstrap test installs them")
      }
      let cases = DoctorCase.all.filter { here.contains($0.front) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for front in here { group.addTask { try await Self.expectNothing(front) } }
        for (number, example) in cases.enumerated() {
          if number >= 8 { try await group.next() }
          group.addTask { try await Self.expect(example) }
        }
        try await group.waitForAll()
      }
    }

    /// The right configuration has no finding.
    private static func expectNothing(_ front: DoctorFront) async throws {
      let scratch = try Scratch()
      let token = try token(in: scratch)
      let server = try await ServeProcess.start(in: scratch, options: token + ["--allow-origin", "*"])
      let proxy = try await front.start(behind: server.port, [], in: scratch)
      let options = ["--yes", "--pause", "2s", "--origin", "https://app.example"]
      let run = try await DoctorRun("\(proxy.url)/", options + token, in: scratch)
      #expect(run.kinds.isEmpty && run.end == .exited(0), "\(front.rawValue): \(run.text)")
      #expect(server.folder.files().isEmpty)
    }

    /// With a token, the server takes the host's name that a proxy passes on.
    private static func token(in scratch: Scratch) throws -> [String] {
      let file = scratch.path("token")
      try "a-token-of-a-test".write(toFile: file, atomically: true, encoding: .utf8)
      return ["--token-file", file]
    }

    private static func expect(_ example: DoctorCase) async throws {
      let scratch = try Scratch()
      let token = try token(in: scratch)
      let server = try await ServeProcess.start(in: scratch, options: example.serverOptions + token)
      let proxy = try await example.front.start(
        behind: server.port, path: example.path, example.wrong, at: example.place, in: scratch)
      let options =
        ["--yes"] + (example.options.contains("--pause") ? [] : ["--pause", "1s"]) + example.options + token
      let run = try await DoctorRun(
        "\(example.uploadProtocol)\(proxy.url)\(example.path)", options, in: scratch)
      #expect(Set(run.kinds) == [example.kind], "\(example): \(run.text)")
      #expect(run.end == .exited(1), "\(example): \(run.text)")
      #expect(run.findings.allSatisfy { $0.isMeasured && !$0.what.isEmpty && !$0.consequence.isEmpty }, "\(run.text)")
      #expect(example.says.isEmpty || run.findings.first?.what.contains(example.says) == true, "\(run.text)")
      #expect(server.folder.files().isEmpty, "\(example) has left a file")
      if example.mending == .byHand { return }

      // What the doctor prints mends it, and nothing else was wrong.
      let lines = run.lines(example.kind, for: example.front.name)
      try #require(!lines.isEmpty, "\(example): \(run.text)")
      let all = example.mending == .before ? lines + example.wrong : lines
      let mended = try await example.front.start(
        behind: server.port, path: example.path, all, at: example.place, in: scratch)
      let again = try await DoctorRun(
        "\(example.uploadProtocol)\(mended.url)\(example.path)", options, in: scratch)
      #expect(again.kinds.isEmpty && again.end == .exited(0), "\(example), mended by \(lines): \(again.text)")
    }

    /// This server replaces a file only for a request that says so. Without `--allow-delete`, it keeps the test file.
    @Test(arguments: ["put+", "dav+"], [true, false])
    func plainUploadsToItsOwnServerHaveNoFinding(_ uploadProtocol: String, _ deletes: Bool) async throws {
      let scratch = try Scratch()
      let server = try await ServeProcess.start(in: scratch, options: deletes ? ["--allow-delete"] : [])
      let run = try await DoctorRun("\(uploadProtocol)\(server.url)", in: scratch)
      #expect(run.kinds.isEmpty && run.end == .exited(0), "\(run.text)")
      #expect(run.text.contains("a body may pause"), "\(run.text)")
      #expect(run.text.contains("a body of 16.0 MiB arrives whole"), "\(run.text)")
      #expect(server.folder.files().count == (deletes ? 0 : 1), "\(run.text)")
    }
  }
}
