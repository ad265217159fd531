import BlobServer
import Blobs
import Synchronization
import TestSupport
import Testing

struct OtherPortTests {
  /// A server whose files may have so many bytes together, and how many of its notices contain `words`.
  private func limitedServer(maxTotal: Int64, counting words: String) throws -> (TestServer, () -> Int) {
    let lines = Mutex<[String]>([])
    let server = try TestServer { options in
      options.maxTotal = maxTotal
      options.allowsDelete = true
      options.notice = { line in lines.withLock { $0.append(line) } }
    }
    return (server, { lines.withLock { $0.count { $0.contains(words) } } })
  }

  /// The server looks once a second.
  private func waitForALook() throws {
    let end = ContinuousClock.now + .milliseconds(2500)
    #expect(try eventually { ContinuousClock.now > end })
  }

  @Test func theNextFreePortIsTaken() throws {
    let first = try TestServer()
    let port = first.server.port
    #expect(throws: ServerError.self) { try TestServer { $0.port = port } }
    #expect(throws: ServerError.self) {
      try TestServer { ($0.port, $0.lastPort) = (port, port) }
    }
    if port > 65_000 { return }
    let second = try TestServer { ($0.port, $0.lastPort) = (port, port + 40) }
    #expect(port + 1...port + 40 ~= second.server.port)
    #expect(try second.ask("GET", "/").status == 200)
  }

  @Test func theErrorNamesThePortsThatWereTried() throws {
    let first = try TestServer()
    let port = first.server.port
    // Another program may have it.
    guard let next = try? TestServer({ $0.port = port + 1 }) else { return }
    let error = #expect(throws: ServerError.self) {
      try TestServer { ($0.port, $0.lastPort) = (port, next.server.port) }
    }
    #expect(
      error?.message.contains("all ports from \(port) to \(port + 1) are taken") == true, "\(error?.message ?? "")")
  }

  /// A disk has room, and only the limit is reached: uploads wait long before the last byte of it.
  @Test func aNoticeNamesTheLimitThatHoldsUpAnUpload() throws {
    let (server, count) = try limitedServer(maxTotal: 50 << 20, counting: "all files together may have")
    #expect(try server.ask("PUT", "/a", body: [UInt8](repeating: 1, count: 20 << 20)).status == 201)
    for round in 1...2 {
      for _ in 0..<3 {
        let creation = [tus, ("Upload-Length", "\(40 << 20)"), ("Upload-Metadata", "filename \(base64("b"))")]
        #expect(try server.ask("POST", "/", creation, body: []).status == 507)
      }
      #expect(try eventually { count() == round })
      #expect(try server.ask("DELETE", "/a").status == 204)
      try waitForALook()
      #expect(try server.ask("PUT", "/a", body: [UInt8](repeating: 1, count: 20 << 20)).status == 201)
      #expect(count() == round)
    }
  }

  /// The operator is told once, and again after there was room.
  @Test func theLackOfRoomIsReportedOnce() throws {
    let (server, count) = try limitedServer(maxTotal: 20 << 20, counting: "no room left")
    for round in 1...2 {
      #expect(try server.ask("PUT", "/a", body: [UInt8](repeating: 1, count: 20 << 20)).status == 201)
      #expect(try eventually { count() == round })
      #expect(try server.ask("PUT", "/b", body: [1]).status == 507)
      #expect(try server.ask("DELETE", "/a").status == 204)
      try waitForALook()
      #expect(count() == round)
    }
  }
}
