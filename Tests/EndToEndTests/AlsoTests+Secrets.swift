import BlobTesting
import Foundation
import Synchronization
import TestSupport
import Testing

// Credentials of one destination never go to another one.
extension EndToEnd.AlsoTests {
  /// A server that keeps files, and the fields of each request.
  private final class Listener: Sendable {
    private let seen = Mutex<[String]>([])
    private let files = Mutex<[String: [UInt8]]>([:])
    private let stops: Bool
    private let peer = Mutex<HTTPPeer?>(nil)

    /// `stops`: files are never taken, as by a server that is not ready.
    init(stops: Bool = false) {
      self.stops = stops
      let made = HTTPPeer { [weak self] request in self?.answer(request) }
      peer.withLock { $0 = made }
    }

    deinit { peer.withLock { $0?.stop() } }

    var url: String { "put+\(peer.withLock { $0 }!.url)" }
    var heads: String { seen.withLock { $0.joined(separator: "\n\n") } }

    private func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
      seen.withLock { seen in
        seen.append(
          "\(request.method)\n" + request.headers.fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n"))
      }
      if stops { return .init(request.method == "OPTIONS" ? 405 : 503) }
      return files.withLock { files in
        if request.method == "PUT" {
          files[request.path] = request.body
          return .init(201)
        }
        return files[request.path].map { .init(200, [:], $0) } ?? .init(404)
      }
    }
  }

  private func secret(_ name: String, _ text: String) throws -> String {
    let path = scratch.path(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  @Test func credentialsOfTheCommandLineGoToTheDestinationOnly() async throws {
    let file = try scratch.file("a.JPG", 20_000)
    let netrc = try secret("netrc", "machine localhost login anna password for-localhost\ndefault login d password d\n")
    let ways = [
      ["--token-file", try secret("token", "first-token")],
      ["--header", "@\(try secret("h", "X-Key: first-token\n"))"],
      ["--header", "X-Key: first-token"], ["--netrc-file", netrc],
    ]
    for (number, way) in ways.enumerated() {
      let (first, second) = (Listener(), Listener())
      let url = first.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
      let push = try Command(
        Tool.fullbore, ["push"] + way + [file, "\(url)\(number)/", "--also", "\(second.url)\(number)/"], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(way): \(push.output)\(push.errors)")
      let isNetrc = way[0] == "--netrc-file"
      #expect(first.heads.contains(isNetrc ? "Basic " : "first-token"), "\(way): \(first.heads)")
      #expect(second.heads.contains("PUT"), "\(second.heads)")
      #expect(
        !second.heads.contains("first-token") && !second.heads.lowercased().contains("authorization"), "\(second.heads)"
      )
    }
  }

  /// Also where the journal has to find them again.
  @Test(arguments: ["resume", "push"]) func eachPlaceGetsItsOwnTokenOnly(_ command: String) async throws {
    let file = try scratch.file("a.JPG", 20_000)
    let (first, second) = (Listener(stops: true), Listener(stops: true))
    let environment = try writePlaces(
      """
      [places.one]
      url = "\(first.url)"
      token-file = "\(try secret("one", "token-of-one"))"
      [places.two]
      url = "\(second.url)"
      token-file = "\(try secret("two", "token-of-two"))"
      """)
    let push = try push(file, "one:in/", "--also", "two:in/", "--retries", "0", environment: environment)
    #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
    if command == "resume" {
      let before = [first, second].map(\.heads.count)
      let resume = try Command(Tool.fullbore, ["resume", "--retries", "0"], in: scratch, environment: environment)
      try await resume.wait()
      let after = [first, second].map(\.heads.count)
      #expect(after[0] > before[0] && after[1] > before[1], "\(resume.output)\(resume.errors)")
    }
    for (listener, own, other) in [(first, "one", "two"), (second, "two", "one")] {
      #expect(listener.heads.contains("Bearer token-of-\(own)"), "\(listener.heads)")
      #expect(!listener.heads.contains("token-of-\(other)"), "\(listener.heads)")
    }
  }

  @Test func aTokenOfTheCommandLineDoesNotReplaceThatOfThePlaceBeside() async throws {
    let file = try scratch.file("a.JPG", 20_000)
    let (first, second) = (Listener(), Listener())
    let environment = try writePlaces(
      "[places.two]\nurl = \"\(second.url)\"\ntoken-file = \"\(try secret("two", "token-of-two"))\"\n")
    let push = try push(
      file, first.url, "--token-file", secret("one", "token-of-one"), "--also", "two:", environment: environment)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    #expect(first.heads.contains("token-of-one") && !first.heads.contains("token-of-two"), "\(first.heads)")
    #expect(second.heads.contains("token-of-two") && !second.heads.contains("token-of-one"), "\(second.heads)")
  }

  @Test func onePlaceTwiceIsRefused() async throws {
    let file = try scratch.file("a.JPG", 20_000)
    let server = Listener()
    let environment = try writePlaces(
      "[places.one]\nurl = \"\(server.url)photos/\"\n[places.small]\nurl = \"http://127.0.0.1:9/\"\nexclude = \"*.mov\"\n"
    )
    func at(_ host: String) -> String { server.url.replacing("127.0.0.1", with: host) }
    for (also, words) in [
      ("\(server.url)photos/", "the same destination"), ("\(server.url)", "is in the other"),
      ("\(at("localhost"))photos/", "the same destination"), ("\(at("LocalHost."))%70hotos", "the same destination"),
      ("\(at("[::1]"))photos/2026/", "the same destination"),
      ("one:2026/", "is in the other"), ("small:", "another 'exclude'"),
    ] {
      let push = try push(file, "one:", "--also", also, environment: environment)
      #expect(try await push.wait() == .exited(2) && push.errors.contains(words), "\(also): \(push.errors)")
    }
    #expect(server.heads.isEmpty)
  }
}
