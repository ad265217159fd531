@testable import BlobServer
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

struct LimitTests {
  /// The client sends nothing of the body, with or without `Expect: 100-continue`.
  @Test func aLargeUploadIsRefusedBeforeItsBody() throws {
    for (size, total) in [(1000, nil), (nil, 1000)] as [(Int64?, Int64?)] {
      let server = try TestServer {
        $0.maxSize = size
        $0.maxTotal = total
      }
      for expect in [[], [("Expect", "100-continue")]] {
        let put = try server.client()
        try put.head("PUT", "/x", [("Content-Length", "5000000000")] + expect)
        #expect(try put.readHead().status == 413)
        let post = try server.client()
        try post.head(
          "POST", "/",
          [tus, ("Content-Type", octets), ("Upload-Length", "5000000000"), ("Content-Length", "5000000000")] + expect)
        #expect(try post.readHead().status == 413)
      }
      let upload = try server.create("y", length: nil)
      let patch = try server.client()
      try patch.head(
        "PATCH", upload,
        [
          tus, ("Content-Type", octets), ("Upload-Offset", "0"), ("Upload-Length", "500000"),
          ("Content-Length", "500000"),
        ])
      if size != nil { #expect(try patch.readHead().status == 413) }
      #expect(server.folder.sizeOfKept == 0)
      #expect(try server.ask("PUT", "/z", body: pattern(1000)).status == 201)
    }
  }

  @Test func aBodyOfUnknownLengthIsCutAtTheLimit() throws {
    for (size, total) in [(1000, nil), (nil, 1000)] as [(Int64?, Int64?)] {
      let server = try TestServer {
        $0.maxSize = size
        $0.maxTotal = total
      }
      let client = try server.client()
      try client.head("PUT", "/x", [("Transfer-Encoding", "chunked")])
      try client.send(Array("3e9\r\n".utf8) + pattern(1001) + Array("\r\n".utf8))
      #expect(try client.answer().status == 413)
      #expect(try eventually { server.folder.kept.isEmpty })
    }
  }

  @Test func onlySoManyUploadsMayBeUnfinished() throws {
    let server = try TestServer { $0.maxUnfinished = 2 }
    let first = try server.create("a", length: 10)
    _ = try server.create("b", length: nil)
    func create(_ more: [(String, String)], body: [UInt8]) throws -> RawHTTPClient.Answer {
      try server.ask("POST", "/", [tus, ("Content-Type", octets)] + more, body: body)
    }
    let refused = try create([("Upload-Length", "10")], body: [])
    #expect(refused.status == 503)
    #expect(refused.text.contains("2 uploads are unfinished"))
    #expect(try create([("Upload-Length", "10")], body: [1]).status == 503)
    #expect(try create([("Upload-Defer-Length", "1")], body: []).status == 503)
    #expect(try create([("Upload-Length", "3")], body: [1, 2, 3]).status == 201, "what comes whole stays not")
    #expect(try server.ask("PUT", "/c", body: [1]).status == 201)
    #expect(try server.patch(first, at: 0, pattern(10)).status == 204)
    #expect(try create([("Upload-Length", "10")], body: []).status == 201)
  }

  /// Both threads accept connections, and each hands some to the other.
  @Test func aBurstOfConnectionsStaysUnderTheLimit() throws {
    let folder = try TestFolder()
    var options = ServerOptions(folder: folder.path, port: 0)
    (options.idleTimeout, options.headTimeout) = (.seconds(2), .seconds(1))
    let server = try Server(options, mostConnections: 16)
    defer { server.stop(grace: .zero) }
    var clients: [RawHTTPClient?] = []
    var most = 0
    for number in 0..<160 {
      clients.append(try RawHTTPClient(port: server.port))
      try clients[number]?.head("PUT", "/\(number)", [("Content-Length", "3")])
      most = max(most, server.connectionCount)
    }
    #expect(try eventually { server.connectionCount == 16 })
    // The other connections wait, and are served when there is room.
    for client in clients { try client?.send([1, 2, 3]) }
    for number in clients.indices {
      most = max(most, server.connectionCount)
      #expect(try clients[number]?.answer().status == 201, "\(number)")
      clients[number] = nil
    }
    #expect(most <= 16)
    #expect(try eventually { server.connectionCount == 0 })
  }

  /// Each request may have passed the check of its head before another one was counted.
  @Test func requestsAtTheSameTimeStayUnderTheLimit() throws {
    let server = try TestServer { $0.maxUnfinished = 3 }
    let clients = try (0..<30).map { _ in try server.client() }
    for (number, client) in clients.enumerated() {
      let name = ("Upload-Metadata", "filename \(base64("f\(number)"))")
      try client.head(
        "POST", "/",
        [tus, name, ("Content-Type", octets), ("Upload-Length", "10"), ("Content-Length", "5")])
    }
    for client in clients { try client.send([1, 2, 3, 4, 5]) }
    let statuses = try clients.map { try $0.answer().status }
    #expect(statuses.count { $0 == 201 } == 3, "\(statuses)")
    #expect(statuses.allSatisfy { [201, 503].contains($0) })
    #expect(server.folder.kept.count { $0.hasSuffix(".info") } == 3)
    #expect(try eventually { server.folder.kept.count { $0.hasSuffix(".data") } == 3 })
  }

  /// An interrupted body that was announced as complete becomes an unfinished upload, as far as the limit allows.
  @Test(arguments: [2_000, 5_000_000]) func cutCreationsStayUnderTheLimit(_ length: Int) throws {
    let server = try TestServer { $0.maxUnfinished = 3 }
    let head = [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1"), ("Content-Length", "\(length)")]
    for number in 0..<8 {
      let client = try server.client()
      try client.head("PUT", "/\(number)", head)
      #expect(try client.readHead().status == 104)
      try client.send(pattern(length / 2))
      #expect(try eventually { server.folder.sizeOfKept >= Int64(min(number, 3) + 1) * Int64(length / 2) })
    }
    #expect(try eventually { server.folder.kept.count { $0.hasSuffix(".data") } == 3 })
    #expect(server.folder.kept.count { $0.hasSuffix(".info") } == 3)
    // A complete upload does not count as unfinished.
    let whole = try server.client()
    try whole.head("PUT", "/whole", head)
    #expect(try whole.readHead().status == 104)
    try whole.send(pattern(length))
    #expect(try whole.answer().status == 201)
  }

  /// Pages of folders that clients have requested and not read yet share 64 MiB.
  @Test func pagesOfFoldersTakeBoundedMemory() throws {
    let allowance = Allowance(100)
    let first = try #require(allowance.take(60))
    #expect(allowance.take(41) == nil)
    var second = allowance.take(40)
    #expect(second != nil && allowance.take() == nil)
    second = nil
    #expect(allowance.take(1000) == nil, "all of it")
    withExtendedLifetime(first) {}
  }

  @Test func onePageThatIsTooLargeIsSentAlone() throws {
    let allowance = Allowance(100)
    let whole = allowance.take(1000)
    #expect(whole != nil && allowance.take() == nil)
    withExtendedLifetime(whole) {}
    #expect(allowance.take() == nil)
  }

  @Test func aRecordThatCouldNotBeReadAgainIsRefused() throws {
    let server = try TestServer()
    let part = try server.createPart(length: 2)
    #expect(try server.patch(part, at: 0, [1, 2]).status == 204)
    // Each of these bytes is invalid UTF-8 and becomes three bytes in the record.
    func join(_ count: Int) throws -> RawHTTPClient.Answer {
      let client = try server.client()
      let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\nContent-Length: 0\r\n"
      try client.send(
        Array("\(head)Upload-Metadata: filename eQ==\r\nUpload-Concat: final;/".utf8)
          + [UInt8](repeating: 0x80, count: count) + Array("\(part)\r\n\r\n".utf8))
      return try client.answer()
    }
    let refused = try join(22_000)
    #expect(refused.status == 431 && refused.text.contains("takes more than"), "\(refused.text)")
    #expect(server.folder.kept.count { $0.hasSuffix(".info") } == 1, "that of the part")
    // A record that is nearly as large still has room to grow.
    let final = try join(21_700)
    #expect(final.status == 201)
    // The head of this response is longer than any that a client may send.
    let state = try server.ask("HEAD", try #require(final["Location"]), [tus])
    #expect(state.status == 200 && state["Upload-Concat"]?.utf8.count ?? 0 > 65_000)
    #expect(server.folder.read("y") == [1, 2])
    #expect(server.folder.kept.count { $0.hasSuffix(".done") } == 2)
  }

  /// A name that alternates between a folder and a symbolic link to elsewhere.
  @Test func noRaceLeadsOutOfTheFolder() throws {
    let outside = try TestFolder()
    outside.write("secret", [42])
    outside.write("elsewhere", [42])
    let server = try TestServer { $0.allowsDelete = true }
    server.folder.makeFolder("real")
    server.folder.write("real/secret", [1])
    server.folder.link("link", to: outside.path)
    let isDone = Atomic(false)
    let swaps = Atomic(0)
    let folder = server.folder.path
    let exchange = try #require(renameExchange())
    try withThread {
      while !isDone.load(ordering: .relaxed) {
        let status = folder.appending("real").withCString { real in
          folder.appending("link").withCString { exchange(AT_FDCWD, real, AT_FDCWD, $0, 2) }
        }
        if status == 0 { swaps.add(1, ordering: .relaxed) }
        usleep(20)
      }
    } during: {
      defer { isDone.store(true, ordering: .relaxed) }
      let client = try server.client()
      var (reached, number) = (0, 0)
      // Runs until both outcomes have occurred, because on a busy machine one thread may sleep for long.
      while number < 80 || number < 20_000 && (reached == 0 || reached == number) {
        defer { number += 1 }
        let get = try client.ask("GET", "/real/secret")
        #expect(get.status != 200 || get.body == [1])
        if get.status == 200 { reached += 1 }
        _ = try client.ask("PUT", "/real/new%20\(number % 10)", body: [7])
        _ = try client.ask("PUT", "/real/deep/\(number % 10)", body: [7])
        _ = try client.ask("DELETE", "/real/new%20\(number % 10)")
        #expect(try !client.ask("GET", "/real/").text.contains("elsewhere"))
      }
      #expect(reached > 0 && reached < number, "\(reached) of \(number) were let through")
    }
    #expect(swaps.load(ordering: .relaxed) > 100)
    #expect(Set(TestFolder.names(outside.path)) == ["elsewhere", "secret"])
    #expect(outside.read("secret") == [42])
  }

  @Test func namesCannotDressUpThePage() throws {
    let server = try TestServer()
    for name in ["a\u{202E}gpj.exe", "b\u{1B}[31m", "c\u{85}\u{2028}\u{2066}x", "👩‍👧.jpg"] {
      server.folder.write(BytePath(name), [1])
    }
    let page = try server.ask("GET", "/").text
    for bad in ["\u{202E}", "\u{1B}", "\u{85}", "\u{2028}", "\u{2066}"] { #expect(!page.contains(bad)) }
    #expect(page.contains(">a\u{FFFD}gpj.exe<") && page.contains(">👩‍👧.jpg<"))
    #expect(page.contains("./a%E2%80%AEgpj.exe"))
  }
}

private typealias Rename2 =
  @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

/// `renameat2`, which the Glibc module does not export; flag 2 is RENAME_EXCHANGE. The name exists at every moment.
private func renameExchange() -> Rename2? {
  dlsym(nil, "renameat2").map { unsafeBitCast($0, to: Rename2.self) }
}

/// Runs `work` on its own thread while `body` runs on this one, and waits for both; `body` must make `work` end.
private func withThread(_ work: @escaping () -> Void, during body: () throws -> Void) rethrows {
  let ended = Monitor(false)
  nonisolated(unsafe) let work = work
  SystemThread.start("beside") {
    work()
    ended.update { $0 = true }
  }
  defer { ended.wait { $0 ? () : nil } }
  try body()
}
