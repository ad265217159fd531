import BlobServer
import Blobs
import Platform
import Testing

/// Many unfinished uploads. Set `FULLBORE_UPLOADS` for a larger number.
struct ManyUploadsTests {
  private static let count = getenv("FULLBORE_UPLOADS").flatMap { Int(String(cString: $0)) } ?? 1000
  private static let expiry = Duration.seconds(3600)

  /// Creates the uploads with three of ten bytes each, and returns their URLs.
  private func begin(over folder: TestFolder) throws -> [String] {
    let server = try TestServer(over: folder) { $0.maxUnfinished = nil }
    let client = try server.client()
    return try (0..<Self.count).map { number in
      let head = [
        tus, ("Upload-Length", "10"), ("Content-Type", octets), ("Upload-Metadata", "filename \(base64("f\(number)"))"),
      ]
      let answer = try client.ask("POST", "/", head, body: [1, 2, 3])
      try #require(answer.status == 201)
      return try #require(answer["Location"])
    }
  }

  @Test func manyUnfinishedUploadsAreFoundResumedAndExpired() throws {
    let folder = try TestFolder()
    let uploads = try begin(over: folder)
    let clock = ContinuousClock()
    do {
      let began = clock.now
      let server = try TestServer(over: folder) { $0.maxUnfinished = Self.count }
      let client = try server.client()
      #expect(try client.ask("PUT", "/first", body: [1]).status == 201)
      // An idle server starts within milliseconds; 10,000 records must not make it take seconds.
      #expect(clock.now - began < .seconds(10))
      #expect(try client.ask("POST", "/", [tus, ("Upload-Length", "10")], body: []).status == 503)
      for upload in uploads {
        let answer = try client.ask("HEAD", upload, [tus])
        try #require(answer["Upload-Offset"] == "3")
      }
      for upload in uploads.shuffled().prefix(50) {
        let head = [tus, ("Content-Type", octets), ("Upload-Offset", "3")]
        try #require(client.ask("PATCH", upload, head, body: pattern(7)).status == 204)
      }
      #expect(try client.ask("POST", "/", [tus, ("Upload-Length", "10")], body: []).status == 201)
    }
    #expect(folder.kept.filter { $0.hasSuffix(".info") }.count == Self.count - 49)
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: 7200) }
    let server = try TestServer(over: folder) { $0.expire = Self.expiry }
    // Requests do not wait while expired uploads are removed.
    let client = try server.client()
    for number in 0..<50 { #expect(try client.ask("PUT", "/new\(number)", body: [1]).status == 201) }
    #expect(try eventually { folder.kept.isEmpty })
    #expect(try [404, 410].contains(client.ask("HEAD", uploads[0], [tus]).status))
  }

  /// Compares CPU time of the process, in alternating rounds. Other load only adds to a round, so the minimum of each
  /// kind is compared, and a busy machine gets more rounds; a real extra cost per file would appear in all of them.
  @Test func manyUnfinishedUploadsDoNotSlowAPush() throws {
    let crowded = try TestFolder()
    _ = try begin(over: crowded)
    let servers = try [TestServer(), TestServer(over: crowded) { $0.maxUnfinished = nil }]
    let clients = try servers.map { try $0.client() }
    var costs = [[Double]](repeating: [], count: 2)
    var (free, busy) = (0.0, 0.0)
    for round in 0..<60 {
      for (number, client) in clients.enumerated() {
        let before = Self.cpuTime()
        for file in 0..<50 {
          try #require(client.ask("PUT", "/\(round)-\(file)", body: pattern(1000)).status == 201)
        }
        costs[number].append(Self.cpuTime() - before)
      }
      (free, busy) = (costs[0].min()!, costs[1].min()!)
      if round >= 4, busy < 2 * free { break }
    }
    print("50 small files: \(free) s of CPU alone, \(busy) s beside \(Self.count) unfinished uploads")
    #expect(busy < 2 * free)
  }

  private static func cpuTime() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
  }
}
