import Blobs
import Platform
import TestSupport
import Testing

@testable import BlobServer

struct ConnectionLimitTests {
  @Test func noLimitOfFilesIsExceeded() {
    for files in 0...70_000 {
      let most = ConnectionLimit.connections(opening: files, workers: 8)
      #expect(most == 0 || ConnectionLimit.files(for: most, workers: 8) <= files)
      #expect(ConnectionLimit.files(for: most + 1, workers: 8) > files, "there is room for one more")
    }
  }

  /// A process may inherit descriptors above a gap.
  @Test func everyOpenFileIsCounted() throws {
    let before = try ConnectionLimit.connections(within: 100_000, workers: 8)
    let first = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
    let high = (0..<200).map { fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first + 100 + $0) }
    defer { for descriptor in high + [first] { close(descriptor) } }
    #expect(high.allSatisfy { $0 >= first + 100 })
    let after = try ConnectionLimit.connections(within: 100_000, workers: 8)
    // Servers of earlier tests may still close files.
    #expect(90...110 ~= before - after, "\(before), then \(after)")
  }

  /// A loop whose places were all taken accepts again when one of them is free, and does not wait for the next sweep.
  @Test func aFreePlaceIsTakenAtOnce() throws {
    let folder = try TestFolder()
    var options = ServerOptions(folder: folder.path, port: 0)
    (options.idleTimeout, options.headTimeout) = (.seconds(3600), .seconds(3600))
    let server = try Server(options, mostConnections: 1)
    defer { server.stop(grace: .zero) }
    let start = ContinuousClock.now
    for _ in 0..<10 {
      var first: RawHTTPClient? = try RawHTTPClient(port: server.port)
      #expect(try (first?.ask("PUT", "/x", body: [1]).status ?? 500) < 300)
      let second = try RawHTTPClient(port: server.port)
      try second.head("PUT", "/x", [("Content-Length", "1")])
      try second.send([1])
      #expect(server.connectionCount == 1)
      first = nil
      #expect(try second.answer().status < 300)
    }
    // There is one sweep a second, and each of the clients would wait for the next one.
    #expect(.now - start < .seconds(5))
  }

  /// What a broken request has received is closed by a worker, which may be busy.
  @Test func aPlaceIsFreeWhenItsFilesAreClosed() throws {
    let server = try TestServer()
    let isFree = Monitor(false)
    for _ in 0..<Service.workerThreads { server.server.service.workers.submit { isFree.wait { $0 ? () : nil } } }
    var client: RawHTTPClient? = try server.client()
    try client?.head("PUT", "/x", [("Content-Length", "1000000")])
    try client?.send(pattern(1000))
    #expect(try eventually { server.folder.kept.count == 1 })
    client = nil
    usleep(300_000)
    #expect(server.server.connectionCount == 1)
    isFree.update { $0 = true }
    #expect(try eventually { server.server.connectionCount == 0 && server.folder.kept.isEmpty })
  }

  private func crowdedServer(_ folder: TestFolder) throws -> Server {
    var options = ServerOptions(folder: folder.path, port: 0)
    (options.idleTimeout, options.headTimeout) = (.seconds(3600), .seconds(3600))
    return try Server(options, mostConnections: 4)
  }

  /// A client may keep connections open that it does not need, for example one per thread.
  @Test func anIdleConnectionGivesItsPlaceToAWaitingClient() throws {
    let folder = try TestFolder()
    let server = try crowdedServer(folder)
    defer { server.stop(grace: .zero) }
    let start = ContinuousClock.now
    var clients: [RawHTTPClient] = []
    for _ in 0..<20 {
      let client = try RawHTTPClient(port: server.port)
      #expect(try client.ask("PUT", "/x", body: [1]).status < 300)
      clients.append(client)
      #expect(server.connectionCount <= 4)
    }
    #expect(.now - start < .seconds(8), "nobody waits for a sweep, of which there is one a second")
    // At least one of the last four connections still works. The other event loop may have closed some of them for a
    // client that this loop has accepted meanwhile.
    #expect(clients[16...].contains { (try? $0.ask("PUT", "/x", body: [1]).status) ?? 500 < 300 })
  }

  /// A client may open connections that it does not use, and may leave the last one open.
  @Test(arguments: [false, true]) func aSilentConnectionGivesItsPlaceToAWaitingClient(hasAsked: Bool) throws {
    let folder = try TestFolder()
    let server = try crowdedServer(folder)
    defer { server.stop(grace: .zero) }
    let silent = try (0..<8).map { _ in try RawHTTPClient(port: server.port) }
    if hasAsked {
      for client in silent[..<4] {
        #expect(try client.ask("GET", "/x", [("Connection", "close")]).status == 404)
      }
    }
    let start = ContinuousClock.now
    #expect(try RawHTTPClient(port: server.port).ask("PUT", "/x", body: [1]).status < 300)
    #expect(.now - start < .seconds(4))
    withExtendedLifetime(silent) {}
  }

  /// Connections that are never idle close after a response, so that the waiting clients get their turn.
  @Test func busyClientsLetOthersIn() throws {
    let folder = try TestFolder()
    let server = try crowdedServer(folder)
    defer { server.stop(grace: .zero) }
    let busy = try (0..<4).map { _ in try RawHTTPClient(port: server.port) }
    for client in busy { #expect(try client.ask("PUT", "/x", body: [1]).status < 300) }
    let waiting = try RawHTTPClient(port: server.port)
    try waiting.head("PUT", "/x", [("Content-Length", "1")])
    try waiting.send([1])
    var closing = 0
    let end = ContinuousClock.now + .seconds(10)
    while closing == 0, .now < end {
      for client in busy where try client.ask("PUT", "/x", body: [1]).headers["Connection"] == "close" { closing += 1 }
    }
    try #require(closing > 0)
    #expect(try waiting.answer().status < 300)
  }
}

struct ConnectionTimerTests {
  /// The server was stopped for an hour, and the client has sent everything meanwhile.
  @Test func aPauseOfTheServerIsNotTheClients() {
    let limits = ConnectionTimer.Limits(idle: .seconds(60), head: .seconds(20), bytesPerSecond: 1)
    let start = ContinuousClock.now
    let later = start + .seconds(3601)
    var idle = ConnectionTimer(start, limits)
    idle.idle(start)
    var busy = ConnectionTimer(start, limits)
    busy.goOn(start)
    _ = busy.isOver(start, limits) { 0 }
    var lingering = ConnectionTimer(start, limits)
    lingering.linger(start, isInVain: false)
    for timer in [ConnectionTimer(start, limits), idle, busy, lingering] {
      var (paused, working, new) = (timer, timer, timer)
      paused.extend(by: .seconds(3600), since: start)
      #expect(!paused.isOver(later, limits) { 0 })
      #expect(working.isOver(later, limits) { 0 })
      // A server without connections waits as long as it takes for the next one, which has its ordinary time.
      new.extend(by: .seconds(3600), since: start - .milliseconds(1))
      #expect(new.isOver(later, limits) { 0 })
    }
  }
}
