import BlobHTTP
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

@testable import BlobServer

/// `/healthz`, `/metrics`, and what the server reports of answered requests.
struct MonitoringTests {
  private let token = ("Authorization", "Bearer secret")

  // MARK: Health

  @Test func healthNeedsNeitherTokenNorHost() throws {
    let server = try TestServer { $0.token = "secret" }
    let answer = try server.ask("GET", "/healthz", [("Host", "other.example")])
    #expect(answer.status == 200 && answer.text == "ok\n")
    #expect(answer["Content-Type"]?.hasPrefix("text/plain") == true && answer["Cache-Control"] == "no-store")
    #expect(try server.ask("HEAD", "/healthz?x=1").status == 200)
    #expect(try server.ask("PUT", "/healthz", body: [1]).status == 401)
    #expect(try server.ask("GET", "/healthz/").status == 401)
    #expect(try TestServer { $0.reading = .nothing }.ask("GET", "/healthz", [("Host", "10.0.0.1")]).status == 200)
  }

  @Test(arguments: ["/healthz", "/metrics"]) func aPublishedFileIsNotHidden(_ path: String) throws {
    let server = try TestServer { $0.token = "secret" }
    #expect(try server.ask("PUT", path, [token], body: Array("mine".utf8)).status == 201)
    #expect(try server.ask("GET", path, [token]).text == "mine")
    #expect(try server.ask("GET", path).status == 401)
    #expect(try server.ask("GET", path, [token, ("Range", "bytes=1-2")]).text == "in")
    server.folder.path.appending(BytePath(String(path.dropFirst()))).withCString { _ = unlink($0) }
    #expect(try server.ask("GET", path, [token]).status == 200)
    server.folder.link(BytePath(String(path.dropFirst())), to: "nowhere")
    // Files that other programs make are noticed within a second.
    #expect(try eventually { try server.ask("GET", path, [token]).status == 403 })
  }

  @Test func aServerWithoutItsFolderIsUnwell() throws {
    let outer = try TestFolder()
    outer.makeFolder("served")
    let server = try TestServer(over: outer) { $0.folder = outer.path.appending("served") }
    #expect(try server.ask("GET", "/healthz").status == 200)
    outer.rename("served", to: "old")
    #expect(try eventually { try server.ask("GET", "/healthz").status == 503 })
    #expect(try server.ask("GET", "/healthz").text.contains("cannot be opened"))
    #expect(try server.ask("GET", "/metrics").text.contains("\nfullbore_folder_usable 0\n"))
    outer.rename("old", to: "served")
    #expect(try eventually { try server.ask("GET", "/healthz").status == 200 })
  }

  @Test(.enabled(if: getuid() == 0, "only root can mount")) func aServerWithAFullDiskIsUnwell() throws {
    let folder = try TestFolder()
    guard folder.path.mount("tmpfs", "tmpfs", options: "size=256k") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { folder.path.unmount() }
    let server = try TestServer(over: folder)
    #expect(try server.ask("GET", "/healthz").status == 200)
    folder.write("filler", pattern(256 << 10))
    #expect(try eventually { try server.ask("GET", "/healthz").status == 503 })
    #expect(try server.ask("GET", "/healthz").text.contains("is full"))
  }

  /// No thread asks the disk then, so probes do not pile up behind each other.
  @Test func aStalledDiskIsNotAsked() {
    let health = FolderHealth(patience: .milliseconds(1))
    usleep(5_000)
    #expect(health.stall != nil && health.problem?.contains("has not responded") == true)
    health.note(FolderHealth.Finding(free: 7))
    #expect(health.free == 7)
    let patient = FolderHealth()
    patient.note(FolderHealth.Finding(problem: "gone"))
    #expect(patient.stall == nil && patient.problem == "gone")
  }

  /// A file that is too large for the room is refused, and others fill it up.
  @Test func aRefusalForLackOfRoomIsReportedAgainOnceMuchLessIsLeft() {
    let health = FolderHealth()
    func line(_ free: Int64) -> String? { health.note(FolderHealth.Finding(free: free, refusingLimit: 100 << 20)) }
    #expect(line(60 << 20) != nil)
    #expect(line(50 << 20) == nil)
    #expect(line(20 << 20)?.contains("\(20 << 20) that are left") == true)
    #expect(line(15 << 20) == nil)
  }

  /// Previews, lists and a disk that does not respond can keep the threads that look up names busy for any time.
  @Test func healthWaitsForNoOtherRequest() throws {
    let isOver = Monitor(false)
    let server = try TestServer {
      $0.token = "secret"
      $0.thumbnail = { _ in
        isOver.wait { $0 ? () : nil }
        return nil
      }
    }
    server.folder.write("a.jpg", [1])
    let readers = try (0..<8).map { _ in try server.client() }
    for reader in readers { try reader.head("GET", "/a.jpg?thumbnail", [token]) }
    let port = server.server.port
    let answers = Background { [token] in
      let paths: [(String, [(String, String)])] = [("/healthz", []), ("/metrics", [token])]
      return paths.map { path, headers in try? RawHTTPClient(port: port).ask("GET", path, headers).status }
    }
    #expect(answers.value(within: .seconds(10)) == [200, 200])
    isOver.update { $0 = true }
    for reader in readers { #expect(try reader.answer().status == 404) }
  }

  // MARK: Metrics

  @Test func metricsCountWhatIsDone() throws {
    let server = try TestServer { $0.token = "secret" }
    #expect(try server.ask("GET", "/metrics").status == 401)
    #expect(try server.ask("PUT", "/a", [token], body: pattern(1000)).status == 201)
    #expect(try server.ask("PUT", "/a", [token], body: pattern(10)).status == 409)
    #expect(try server.ask("GET", "/a", [token]).body.count == 1000)
    let creation = [tus, token, ("Upload-Length", "10"), ("Upload-Metadata", "filename \(base64("b"))")]
    let upload = try #require(try server.ask("POST", "/", creation, body: [])["Location"])
    let unfinished = try #require(try server.ask("POST", "/", creation, body: [])["Location"])
    #expect(try server.patch(upload, at: 0, pattern(10), [token]).status == 204)
    let cut = try server.client()
    try cut.head("PUT", "/c", [token, ("Content-Length", "100")])
    try cut.send(pattern(50))
    #expect(
      try eventually { try Exposition(server.ask("GET", "/metrics", [token]).text)["uploads_begun_total"] == "4" })
    cut.finishSending()
    var found = Exposition("")
    let isCounted = try eventually {
      let answer = try server.ask("GET", "/metrics", [token])
      if answer["Content-Type"] != "text/plain; version=0.0.4; charset=utf-8" { return false }
      found = Exposition(answer.text)
      return found["uploads_failed_total"] == "1" && found["connections"] == "1"
    }
    #expect(isCounted)
    #expect(found.problems.isEmpty, "\(found.problems)")
    let expected = [
      "build_info{version=\"\(Release.version)\"}": "1", "uploads_begun_total": "4", "uploads_finished_total": "2",
      "uploads_unfinished": "1", "uploads_expired_total": "0", "received_file_bytes_total": "1010",
      "sent_files_total": "1", "requests_in_progress": "1", "folder_usable": "1", "responses_total{class=\"5xx\"}": "0",
    ]
    for (name, value) in expected { #expect(found[name] == value, "\(name)") }
    func number(_ name: String) -> Double { found[name].flatMap { Double($0) } ?? -1 }
    #expect(number("responses_total{class=\"4xx\"}") >= 2 && number("responses_total{class=\"2xx\"}") >= 5)
    #expect(number("received_bytes_total") > 1070 && number("sent_bytes_total") > 2000 && number("free_bytes") > 0)
    #expect(number("request_duration_seconds_count") == number("request_duration_seconds_bucket{le=\"+Inf\"}"))
    #expect(number("request_duration_seconds_sum") > 0)
    #expect(
      try server.ask("DELETE", unfinished, [tus, token]).status == 204
        && Exposition(server.ask("GET", "/metrics", [token]).text)["uploads_failed_total"] == "2")
  }

  /// The parts of an upload are no uploads of their own.
  @Test func anUploadInPartsIsOne() throws {
    let server = try TestServer()
    let parts = try (0..<2).map { _ in
      let part = try server.ask("POST", "/", [tus, ("Upload-Length", "4"), ("Upload-Concat", "partial")], body: [])
      let place = try #require(part["Location"])
      #expect(try server.patch(place, at: 0, pattern(4)).status == 204)
      return place
    }
    let final = [
      tus, ("Upload-Concat", "final;\(parts.joined(separator: " "))"), ("Upload-Metadata", "filename \(base64("x"))"),
    ]
    #expect(try server.ask("POST", "/", final, body: []).status == 201)
    #expect(try eventually { server.folder.read("x")?.count == 8 })
    let found = try Exposition(server.ask("GET", "/metrics").text)
    #expect(found["uploads_begun_total"] == "1" && found["uploads_failed_total"] == "0")
    #expect(try eventually { try Exposition(server.ask("GET", "/metrics").text)["uploads_finished_total"] == "1" })
  }

  @Test func metricsCanHaveAnAddressOfTheirOwn() throws {
    let server = try TestServer {
      $0.token = "secret"
      $0.metrics = ("127.0.0.1", 0)
    }
    let url = try #require(server.server.metricsURL.flatMap { HTTPURL($0) })
    #expect(url.path == "/metrics" && url.port != Int(server.server.port))
    func ask(_ method: String, _ path: String, _ host: String = "localhost:\(url.port)") throws -> RawHTTPClient.Answer
    {
      try RawHTTPClient(port: UInt16(url.port)).ask(method, path, [("Host", host)])
    }
    let first = try ask("GET", "/metrics").text
    #expect(Exposition(first).problems.isEmpty && Exposition(first)["received_bytes_total"] == "0")
    #expect(try ask("GET", "/metrics").status == 200)
    // A page of another site must not read them through a name that leads to this machine.
    #expect(try ask("GET", "/metrics", "evil.example").status == 421)
    #expect(try ask("GET", "/").status == 404 && ask("PUT", "/metrics").status == 404)
    // Reading them is not counted.
    #expect(try Exposition(ask("GET", "/metrics").text)["received_bytes_total"] == "0")
    #expect(try server.ask("GET", "/metrics", [token]).status == 404)
    #expect(throws: ServerError.self) { try TestServer { $0.metrics = ("0.0.0.0", 0) } }
  }

  // MARK: Answered requests

  @Test func answeredRequestsAreReported() throws {
    let all = Mutex<[AnsweredRequest]>([])
    let server = try TestServer { options in options.answered = { request in all.withLock { $0.append(request) } } }
    func last(_ count: Int) throws -> AnsweredRequest {
      #expect(try eventually { all.withLock { $0.count == count } })
      return try #require(all.withLock { $0.last })
    }
    let before = wallClock()
    _ = try server.ask("PUT", "/a%20b?ticket=secret", [("User-Agent", "Test/1")], body: pattern(5000))
    let put = try last(1)
    #expect(put.method == "PUT" && put.path == "/a%20b" && put.status == 201)
    #expect(put.bytesReceived == 5000 && put.bytesSent == 0)
    #expect(put.client == Sender(address: "127.0.0.1", agent: "Test/1"))
    #expect(put.time >= before - 1_000_000_000 && put.time <= wallClock() && put.duration > .zero)
    _ = try server.ask("GET", "http://localhost/a%20b?x", [("Range", "bytes=0-99")])
    let get = try last(2)
    #expect(get.path == "/a%20b" && get.status == 206 && get.bytesSent == 100 && get.bytesReceived == 0)
    _ = try server.ask("HEAD", "/a%20b")
    #expect(try last(3).bytesSent == 0)
    let client = try server.client()
    try client.send(Array("nonsense\r\n\r\n".utf8))
    _ = try client.answer()
    let malformed = try last(4)
    #expect(malformed.status == 400 && malformed.path.isEmpty && malformed.client.address == "127.0.0.1")
    // A request that was cut before its answer has no line.
    let cut = try server.client()
    try cut.head("PUT", "/c", [("Content-Length", "100")])
    cut.finishSending()
    #expect(try eventually { server.server.connectionCount == 1 })
    #expect(try last(4).status == 400)
  }

  @Test func bytesOfALargeBodyAreReported() throws {
    let all = Mutex<[AnsweredRequest]>([])
    let server = try TestServer { options in options.answered = { request in all.withLock { $0.append(request) } } }
    _ = try server.ask("PUT", "/a", body: pattern(3 << 20))
    #expect(try server.ask("GET", "/a").body.count == 3 << 20)
    // Two threads serve the connections, so either request may be reported first.
    #expect(try eventually { all.withLock { $0.count == 2 } })
    let found = all.withLock { $0.sorted { $0.method < $1.method } }
    #expect(found.map(\.bytesReceived) == [0, 3 << 20] && found.map(\.bytesSent) == [3 << 20, 0])
  }
}

/// Metrics in the text format of Prometheus, with what is wrong with it.
private struct Exposition {
  private(set) var problems: [String] = []
  private var values: [String: String] = [:]

  subscript(name: String) -> String? { values["fullbore_\(name)"] }

  init(_ text: String) {
    var kinds: [String: String] = [:]
    var helped: Set<String> = []
    if !text.isEmpty, !text.hasSuffix("\n") { problems.append("the last line has no end") }
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if let help = line.wholeMatch(of: /# HELP ([a-z_]+) ([ -~]+\.)/) {
        if !helped.insert(String(help.1)).inserted { problems.append("two helps: \(line)") }
      } else if let type = line.wholeMatch(of: /# TYPE ([a-z_]+) (counter|gauge|histogram)/) {
        if kinds.updateValue(String(type.2), forKey: String(type.1)) != nil { problems.append("two types: \(line)") }
      } else if let sample = line.wholeMatch(of: /([a-z_]+)(\{[a-z]+="[^"\\]*"\})? (-?[0-9]+(?:\.[0-9]+)?)/) {
        let name = String(sample.1)
        let family = name.replacing(/_(bucket|sum|count)$/, with: "")
        let kind = kinds[name] ?? (kinds[family] == "histogram" ? "histogram" : nil)
        if kind == nil || !helped.contains(kinds[name] == nil ? family : name) { problems.append("no type: \(line)") }
        if kind == "counter" ? !name.hasSuffix("_total") : name.hasSuffix("_total") { problems.append("name: \(line)") }
        let key = name + (sample.2 ?? "")
        if values.updateValue(String(sample.3), forKey: key) != nil { problems.append("twice: \(line)") }
      } else {
        problems.append("not understood: \(line)")
      }
    }
  }
}
