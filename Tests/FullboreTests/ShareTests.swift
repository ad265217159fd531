import Blobs
import Foundation
import Platform
import TestSupport
import Testing

@testable import BlobServer
@testable import fullbore

/// `serve --share`: its options, links and codes, and when it ends.
@Suite struct ShareTests {
  private let scratch = Scratch()

  private func command(_ arguments: BytePath...) throws(UsageError) -> ServeCommand {
    try ServeCommand(Arguments([scratch.path] + arguments, ServeCommand.declaration))
  }

  @Test func sharingListensEverywhereWithACode() throws {
    let plain = try command("--share")
    #expect(plain.listen.address == "0.0.0.0" && plain.listen.port == 8080)
    #expect(plain.options.reading == .names && plain.share?.period == nil)
    let token = try #require(plain.options.token)
    #expect(token.wholeMatch(of: /([2-9a-hjkmnp-z]{4}-){2}[2-9a-hjkmnp-z]{4}/) != nil, "\(token)")
    #expect(try command("--share").options.token != token)

    let all = try command("--share", "--download", "--for", "2h", "--once", "--listen", "127.0.0.1:0")
    #expect(all.options.reading == .files && all.share?.period == .seconds(7200) && all.share?.endsAfterVisit == true)
    #expect(all.listen.address == "127.0.0.1")
    #expect(try command("--share", "--receive-only").options.reading == .nothing)
    #expect(try command("--receive-only").options.reading == .nothing)
    #expect(try command().options.reading == .files)
    #expect(try command().options.token == nil && command().share == nil)
  }

  @Test(
    arguments: [
      (["--download"], "belongs to --share"), (["--once"], "belongs to --share"),
      (["--for", "2h"], "belongs to --share"),
      (["--share", "--for", "0s"], "--for"), (["--share", "--receive-only", "--download"], "exclude each other"),
      (["--receive-only", "--read-only"], "nothing would be left"), (["--share", "--read-only"], "--download"),
      (["--listen", "0.0.0.0:0"], "--token-file"), (["--tls", "other"], "'self'"),
      (["--tls", "self", "--tls-cert", "x", "--tls-key", "y"], "exclude each other"),
    ] as [([BytePath], String)])
  func optionsThatContradictAreRefused(_ arguments: [BytePath], _ part: String) {
    let message = usageError { () throws(UsageError) in
      _ = try ServeCommand(Arguments([scratch.path] + arguments, ServeCommand.declaration))
    }
    #expect(message?.contains(part) == true, "\(message ?? "accepted")")
  }

  @Test func theAddressOfTheHomeNetworkComesFirst() {
    let local = [
      LocalAddress(text: "172.17.0.1", isIPv6: false, interface: "docker0"),
      LocalAddress(text: "2001:db8::1", isIPv6: true, interface: "eth0"),
      LocalAddress(text: "203.0.113.5", isIPv6: false, interface: "eth1"),
      LocalAddress(text: "192.168.1.7", isIPv6: false, interface: "wlan0"),
    ]
    func hosts(_ text: String) -> [String] { ShareLinks.hosts(ListenAddress(text)!, local) }
    #expect(hosts("0.0.0.0:1") == ["192.168.1.7", "203.0.113.5", "172.17.0.1"])
    #expect(hosts("[::]:1") == ["192.168.1.7", "203.0.113.5", "[2001:db8::1]", "172.17.0.1"])
    #expect(hosts("127.0.0.1:1") == ["127.0.0.1"] && hosts("[::1]:1") == ["[::1]"])
    #expect(ShareLinks.hosts(ListenAddress("0.0.0.0:1")!, []) == ["127.0.0.1"])
    #expect(LocalAddress.all().allSatisfy { !$0.text.hasPrefix("127.") && $0.text != "::1" })
  }

  @Test func aNameIsALinkWhereItIsAnnounced() throws {
    let local = [LocalAddress(text: "192.168.1.7", isIPv6: false, interface: "wlan0")]
    func hosts(_ text: String) -> [String] { ShareLinks.hosts(ListenAddress(text)!, local, announced: "studio.local") }
    #expect(hosts("0.0.0.0:1") == ["192.168.1.7", "studio.local"] && hosts("127.0.0.1:1") == ["127.0.0.1"])
    #expect(ShareLinks.hosts(ListenAddress("0.0.0.0:1")!, [], announced: "studio.local") == ["127.0.0.1"])
    #if os(Linux)
      func name(_ text: String?, _ host: String? = "studio.example") throws -> String? {
        let file = scratch.path.appending("pid")
        try? FileManager.default.removeItem(atPath: file.description)
        if let text { try Data(text.utf8).write(to: URL(filePath: file.description)) }
        return MulticastName.announced(host: host, avahi: file)
      }
      #expect(try name("\(getpid())\n") == "studio.local" && name("1", "studio") == "studio.local")
      for text in [nil, "", "\n", "0", "-1", "99999999999", "999999999", "x"] { #expect(try name(text) == nil) }
      #expect(try name("1", nil) == nil)
    #endif
  }

  /// Only `--share` without `--listen` takes another port than 8080.
  @Test func anotherPortIsTakenOnlyWhereNoneWasNamed() throws {
    #expect(try command("--share").options.lastPort == 8099)
    #expect(
      try command("--share", "--listen", "0.0.0.0:8080").options.lastPort == nil && command().options.lastPort == nil)
  }

  /// The drawing shows the modules that the library has made, and around them the four light ones of ISO/IEC 18004.
  @Test func theCodeIsDrawnAsItIs() throws {
    let code = try #require(QRCode("http://192.168.1.7:8080/#k7mq-4w9x-p3tz"))
    let drawn = code.lines.flatMap { line -> [[Bool]] in
      let characters = line.dropFirst("\u{1B}[30;107m".count).dropLast("\u{1B}[0m".count)
      return [
        characters.map { "\u{2580}\u{2588}".contains($0) }, characters.map { "\u{2584}\u{2588}".contains($0) },
      ]
    }
    let size = code.modules.count
    #expect(size >= 21 && (size - 21) % 4 == 0 && code.modules.allSatisfy { $0.count == size })
    #expect(drawn.dropFirst(4).prefix(size).map { Array($0.dropFirst(4).prefix(size)) } == code.modules)
    #expect(drawn.count >= size + 8 && drawn.allSatisfy { $0.count == size + 8 })
    #expect(
      drawn.prefix(4).allSatisfy { !$0.contains(true) } && drawn.dropFirst(4 + size).allSatisfy { !$0.contains(true) })
    // The corner that all codes have.
    #expect(code.modules[0].prefix(8) == [true, true, true, true, true, true, true, false])
    #expect(QRCode(String(repeating: "x", count: 4000)) == nil)
  }

  @Test func aShareEndsAfterItsTime() async throws {
    let share = try command("--share", "--for", "1s").share
    let server = try Server(ServerOptions(folder: scratch.path, port: 0))
    let began = ContinuousClock.now
    await ServeEnd(server, share, ServeReport(.silent)).wait()
    let took = ContinuousClock.now - began
    #expect(took >= .seconds(1) && took < .seconds(20))
  }

  /// A server with `--once` that ends 0.3 s after the visit, whether it has ended, and a task that waits for its end.
  private func serveOnce() throws -> (Server, Monitor<Bool>, Task<Void, Never>) {
    let share = try command("--share", "--once").share
    let report = ServeReport(.silent)
    var options = ServerOptions(folder: scratch.path, port: 0)
    options.received = { report.received($0) }
    let server = try Server(options)
    let end = ServeEnd(server, share, report, pause: .milliseconds(300))
    let ended = Monitor(false)
    let waiting = Task {
      await end.wait()
      ended.update { $0 = true }
    }
    return (server, ended, waiting)
  }

  @Test func aShareEndsAfterTheFirstVisitAndNotBefore() async throws {
    let (server, ended, waiting) = try serveOnce()
    try await Task.sleep(for: .seconds(2))
    #expect(!ended.update { $0 }, "nobody was there yet")
    let client = try RawHTTPClient(port: server.port)
    #expect(try client.ask("PUT", "/x", body: [1]).status == 201)
    await waiting.value
    #expect(scratch.path.appending("x").withCString { access($0, F_OK) } == 0)
  }

  /// A phone that is locked for a while comes back to its film.
  @Test func aShareWaitsLongerForAnUnfinishedUpload() async throws {
    let (server, ended, waiting) = try serveOnce()
    let client = try RawHTTPClient(port: server.port)
    let tus = ("Tus-Resumable", "1.0.0")
    let name = ("Upload-Metadata", "filename ZmlsbQ==")
    #expect(try client.ask("POST", "/", [tus, name, ("Upload-Length", "3")]).status == 201)
    #expect(try client.ask("PUT", "/x", body: [1]).status == 201)
    try await Task.sleep(for: .seconds(2))
    #expect(!ended.update { $0 }, "the film is not finished")
    await waiting.value
  }

  /// The upload may have been begun in an earlier run: the last message of that run says that it goes on.
  @Test func aShareWaitsLongerForAResumedUploadOfAnEarlierRun() async throws {
    let tus = ("Tus-Resumable", "1.0.0")
    let type = ("Content-Type", "application/offset+octet-stream")
    var places: [String] = []
    do {
      let server = try Server(ServerOptions(folder: scratch.path, port: 0))
      let client = try RawHTTPClient(port: server.port)
      for name in ["ZmlsbQ==", "b3RoZXI="] {
        let headers = [tus, ("Upload-Metadata", "filename \(name)"), ("Upload-Length", "3")]
        places.append(try #require(try client.ask("POST", "/", headers)["Location"]))
      }
      server.stop(grace: .zero)
    }
    let (server, ended, waiting) = try serveOnce()
    #expect(server.activity.unfinished == 0, "nobody has sent anything in this run")
    let client = try RawHTTPClient(port: server.port)
    let film = String(places[0].drop { $0 == "." })
    #expect(try client.ask("PUT", "/x", body: [1]).status == 201)
    #expect(try client.ask("PATCH", film, [tus, type, ("Upload-Offset", "0")], body: [1]).status == 204)
    #expect(server.activity.unfinished == 1)
    try await Task.sleep(for: .seconds(2))
    #expect(!ended.update { $0 }, "the film is not finished")
    // Once the film has arrived, the other upload of the earlier run does not keep the server.
    #expect(
      try RawHTTPClient(port: server.port).ask("PATCH", film, [tus, type, ("Upload-Offset", "1")], body: [2, 3]).status
        == 204)
    await waiting.value
  }

  /// Requests without the code, for the server's health, and for what the client has already neither end the server nor
  /// keep it open.
  @Test func onlyVisitorsCountForOnce() async throws {
    scratch.file("there")
    let share = try command("--share", "--once").share
    let report = ServeReport(.silent)
    var options = ServerOptions(folder: scratch.path, port: 0, token: "secret")
    options.received = { report.received($0) }
    let server = try Server(options)
    let token = ("Authorization", "Bearer secret")
    @Sendable func ask(_ method: String, _ path: String, _ more: [(String, String)] = []) throws -> Int {
      try RawHTTPClient(port: server.port).ask(method, path, more).status
    }
    let tag = try #require(RawHTTPClient(port: server.port).ask("HEAD", "/there", [token])["ETag"])
    let end = ServeEnd(server, share, report, pause: .seconds(1))
    let ended = Monitor(false)
    let waiting = Task {
      await end.wait()
      ended.update { $0 = true }
    }
    for _ in 0..<20 {
      #expect(try ask("HEAD", "/there", [token]) == 200)
      #expect(try ask("GET", "/there", [token, ("If-None-Match", tag)]) == 304)
      #expect(try ask("GET", "/there") == 401)
      #expect(try ask("GET", "/none", [token]) == 404)
      #expect(try ask("GET", "/healthz") == 200 && ask("GET", "/metrics", [token]) == 200)
      try await Task.sleep(for: .milliseconds(100))
    }
    #expect(!ended.update { $0 }, "nothing was sent or fetched yet")
    #expect(try ask("GET", "/there", [token, ("Range", "bytes=0-0")]) == 206)
    for _ in 0..<100 where !ended.update({ $0 }) {
      _ = try? ask("GET", "/there")
      _ = try? ask("HEAD", "/there", [token])
      try await Task.sleep(for: .milliseconds(100))
    }
    #expect(ended.update { $0 }, "requests of strangers keep the server open")
    waiting.cancel()
    await waiting.value
  }

  /// A file that an earlier run has received, and that is published when the server starts, is no visit.
  @Test func aFileOfAnEarlierRunIsNoVisit() async throws {
    let share = try command("--share", "--once").share
    let report = ServeReport(.silent)
    report.received(try file(by: nil))
    let server = try Server(ServerOptions(folder: scratch.path, port: 0))
    let end = ServeEnd(server, share, report, pause: .milliseconds(1))
    let waiting = Task {
      await end.wait()
      return Task.isCancelled
    }
    try await Task.sleep(for: .seconds(2))
    waiting.cancel()
    #expect(await waiting.value)
  }

  private func file(by sender: Sender?) throws -> ReceivedFile {
    let item = StoredItem(isFolder: false, length: 5, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
    return ReceivedFile(try ServedPath("a.jpg".utf8), Publication(outcome: .created, item: item), by: sender)
  }

  /// Ctrl-S in a terminal, or a program that does not read its pipe, must not keep clients waiting for their answers.
  @Test func aReaderThatDoesNotReadHoldsUpNoReport() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    let report = ServeReport(.json, output: Console(descriptor: ends[1], limit: 0))
    let sender = Sender(address: "192.0.2.7", agent: String(repeating: "x", count: 15_000))
    let received = try file(by: sender)
    let work = Background {
      for _ in 0..<200 { report.received(received) }
      report.finish(within: .milliseconds(200))
      return true
    }
    #expect(work.value(within: .seconds(20)) == true)
  }

  @Test func linesThatNobodyReadsAreCounted() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { close(ends[0]) }
    let writer = ConsoleWriter(Console(descriptor: ends[1], limit: 0))
    for _ in 0..<20_000 { writer.write(String(repeating: "x", count: 100)) }
    let text = Background { [end = ends[0]] in
      var text: [UInt8] = []
      var room = [UInt8](repeating: 0, count: 65536)
      while case let count = read(end, &room, room.count), count > 0 { text += room.prefix(count) }
      return String(decoding: text, as: UTF8.self)
    }
    #expect(writer.finish(within: .seconds(20)))
    close(ends[1])
    let lines = try #require(text.value()).split(separator: "\n")
    let counts = lines.compactMap { line in
      line.firstMatch(of: /warning: (.+) lines were left out here/).flatMap { Int($0.1.filter(\.isNumber)) }
    }
    #expect(!counts.isEmpty && lines.count - counts.count + counts.reduce(0, +) == 20_000, "\(counts)")
  }
}
