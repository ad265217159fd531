import Foundation
import Testing

extension EndToEnd {
  /// All files change continuously, and the server still publishes only content that existed.
  @Suite(.serialized) struct ChurnTests {
    private let scratch = try! Scratch()

    /// `FULLBORE_CHURN` is the duration in seconds.
    @Test func whateverArrivesWasAVersionOfItsFile() async throws {
      let seconds = Tool.number("FULLBORE_CHURN", default: 60)
      let seed = Tool.number("FULLBORE_SEED", default: Int.random(in: 0...999_999))
      print("FULLBORE_SEED=\(seed) FULLBORE_CHURN=\(seconds)")
      for folder in ["gallery/a", "gallery/b"] { try scratch.folder(folder) }
      let churn = Churn(scratch.path("gallery"), seed: UInt64(seed))
      for _ in 0..<60 { try await churn.step() }
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url + "watched/", in: scratch, "--overwrite")

      let deadline = ContinuousClock.now + .seconds(seconds)
      var arrivals = Arrivals(server.folder, churn)
      async let pushes = pushAgainAndAgain(to: server.url, until: deadline)
      async let changes: Void = change(churn, until: deadline)
      while ContinuousClock.now < deadline {
        try arrivals.look()
        try await Task.sleep(for: .milliseconds(20))
      }
      try await changes
      let count = try await pushes

      // Once the files no longer change, both servers get the current versions.
      let (end, push) = try await fullbore(
        "push", "--overwrite", scratch.path("gallery/"), server.url + "pushed/", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let gallery = Folder(scratch.path("gallery"))
      let now = gallery.files().filter { !$0.key.hasPrefix(".") }
      for place in ["pushed", "watched"] {
        let received = Folder("\(server.folder.path)/\(place)")
        var missing: [String] = []
        do {
          try await watch.until("all is there in \(place)") {
            missing = now.keys.filter { !gallery.hasSameBytes($0, as: received) }
            return missing.isEmpty ? true : nil
          }
        } catch {
          throw Command.Failure("\(missing) \(error)")
        }
      }
      try arrivals.look()
      #expect(try await watch.stop() == .exited(130))
      print(
        "\(churn.counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", "));",
        "\(count) pushes; looked at \(arrivals.pushed) pushed and \(arrivals.watched) watched versions")
      #expect(arrivals.pushed > 20 && arrivals.watched > 5)
      #expect(churn.counts.count == 7, "\(churn.counts)")
    }

    /// Checks that the test above would detect a mixture.
    @Test func aMixtureIsSeen() async throws {
      try scratch.folder("gallery")
      func content(_ number: Int, _ length: Int) -> Data {
        Data(
          (0...(length / 512)).flatMap { block in
            let line = Array("\(number) \(length) \(block) ".utf8)
            return line + [UInt8](repeating: UInt8(ascii: "."), count: 512 - line.count)
          }.prefix(length))
      }
      let path = scratch.path("gallery/IMG.jpg")
      func version(_ bytes: Data) throws -> Churn.Version? {
        try bytes.write(to: URL(fileURLWithPath: path))
        return try Churn.version(of: path)
      }
      let (a, b) = (content(1, 5000), content(2, 5000))
      #expect(try version(a) == Churn.Version(number: 1, told: 5000, length: 5000))
      #expect(try version(a.prefix(2000)) == Churn.Version(number: 1, told: 5000, length: 2000))
      #expect(try version(a.prefix(2000))?.isWhole == false)
      #expect(try version(a.prefix(1024) + b.dropFirst(1024)) == nil)
      #expect(try version(a + a.dropFirst(512)) == nil)
    }

    private func change(_ churn: Churn, until deadline: ContinuousClock.Instant) async throws {
      while ContinuousClock.now < deadline {
        for _ in 0..<20 { try await churn.step() }
        // Sometimes the files rest for longer than a watch waits.
        try await Task.sleep(for: .milliseconds(Int.random(in: 0...1) * 700))
      }
    }

    /// Pushes repeatedly. Only changed files may fail, and each of them must be named.
    private func pushAgainAndAgain(to url: String, until deadline: ContinuousClock.Instant) async throws -> Int {
      var count = 0
      let uploadProtocols = ["", "put+", "resumable+"]
      while ContinuousClock.now < deadline {
        let (end, push) = try await fullbore(
          "push", "--overwrite", scratch.path("gallery/"), uploadProtocols[count % 3] + url + "pushed/", in: scratch)
        #expect(end == .exited(0) || end == .exited(1), "\(end) \(push.output)\(push.errors)")
        count += 1
        // Changes are not faster than this, and other tests run at the same time.
        try await Task.sleep(for: .milliseconds(100))
      }
      return count
    }
  }
}

/// Checks each file that a server publishes once.
private struct Arrivals {
  private let folder: Folder
  private let churn: Churn
  private var seen: Set<String> = []
  private(set) var pushed = 0
  private(set) var watched = 0

  init(_ folder: Folder, _ churn: Churn) {
    self.folder = folder
    self.churn = churn
  }

  mutating func look() throws {
    for name in folder.files().keys {
      let path = "\(folder.path)/\(name)"
      var status = stat()
      // The file was replaced by its next version meanwhile, which is checked in the next round.
      guard stat(path, &status) == 0 else { continue }
      let mark = "\(name) \(status.st_ino) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec) \(status.st_size)"
      if !seen.insert(mark).inserted { continue }
      guard let found = try? Churn.version(of: path) else {
        #expect(!FileManager.default.fileExists(atPath: path), "\(name) is a mixture")
        continue
      }
      if name.hasPrefix("watched/") {
        watched += 1
        #expect(found.isWhole || churn.wasCutOnPurpose(found), "\(name): \(found)")
      } else {
        // A push sends a file as it is, even if the file may still grow. It sends the content of that moment.
        pushed += 1
      }
    }
  }
}
