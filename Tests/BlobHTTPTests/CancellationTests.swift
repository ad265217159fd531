import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@Suite struct CancellationTests {
  private typealias Sending = Task<HTTPResponse, any Error>

  /// Cancels, and expects `.cancelled` long before any time limit. On an idle machine this takes one or two
  /// milliseconds. While all other tests run, this task may have to wait longer before it is scheduled.
  private func cancel(_ task: Sending) async {
    let clock = ContinuousClock()
    let start = clock.now
    task.cancel()
    let result = await task.result
    #expect(clock.now - start < .seconds(10))
    #expect(throws: TransportError.self) { try result.get() }
    guard case .failure(let error) = result, let error = error as? TransportError else { return }
    #expect(error.code == .cancelled)
  }

  private func put(_ transport: SocketTransport, _ url: HTTPURL, _ source: any BlobSource) -> Sending {
    Task { try await transport.put(url, source) }
  }

  @Test func endsBeforeAnythingIsSent() async {
    let peer = ScriptedPeer([.readHead])
    let transport = SocketTransport()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await transport.put(peer.url(), PatternSource(length: 1))
    }
    await cancel(task)
    #expect(peer.seen.received.isEmpty)
  }

  @Test func aRequestThatWaitsForAConnectionCanBeCancelled() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer()])
    let transport = SocketTransport(.init(connections: 1))
    let first = put(transport, peer.url(), PatternSource(length: 1))
    await peer.wait { $0.steps.first == 1 }
    await cancel(put(transport, peer.url("/b"), PatternSource(length: 1)))
    peer.release()
    #expect(try await first.value.status == 200)
  }

  /// The URL of an upload that was just created is in an interim response, and the next run needs it.
  @Test func anInterimResponseThatHasArrivedIsDelivered() async throws {
    let peer = ScriptedPeer([.readHead, .send("HTTP/1.1 104 Here\r\nLocation: /u\r\n\r\n"), .hold])
    let transport = SocketTransport()
    let source = HaltingSource()
    let told = Tally()
    let url = peer.url()
    let task = Task {
      try await transport.send(
        HTTPRequest("POST", url), body: BlobSlice(source), Exchange(interim: { told.add($0.status) }))
    }
    await peer.wait { $0.steps.first == 2 }
    while !source.isHalted.load(ordering: .relaxed) { await Task.yield() }
    await cancel(task)
    #expect(told.value == 104)
  }

  /// Otherwise the system would go on sending what is in the socket's buffer, and the server could store it later, after a
  /// newer version.
  @Test(arguments: [false, true]) func cancellingDiscardsTheBytesInTheSocketBuffer(isKept: Bool) async throws {
    let peer = ScriptedPeer((isKept ? [.readRequest, answer()] : []) + [.readHead, .hold, .read(64 << 20)])
    let transport = SocketTransport(.init(connections: 1))
    if isKept {
      _ = try await transport.put(peer.url(), PatternSource(length: 1))
      // The connection is idle for longer than any buffer is kept.
      try await Task.sleep(for: .milliseconds(50))
    }
    let handed = Atomic(0)
    let source = PatternSource(length: 64 << 20)
    let task = Task {
      try await transport.send(
        HTTPRequest("PUT", peer.url()), body: BlobSlice(source, length: 64 << 20),
        Exchange(sent: { handed.add($0, ordering: .relaxed) }))
    }
    var before = -1
    while handed.load(ordering: .relaxed) == 0 || before != handed.load(ordering: .relaxed) {
      before = handed.load(ordering: .relaxed)
      try await Task.sleep(for: .milliseconds(100))
    }
    await cancel(task)
    peer.release()
    await peer.wait { $0.ended == 1 }
    let arrived = peer.seen.received[0].count
    #expect(arrived < before / 2, "\(arrived) of \(before) bytes arrived")
  }

  @Test func endsWhileConnecting() async {
    let (listener, port) = Loopback.listen(backlog: 0)
    // Fills the backlog; the next connection gets no response.
    let filler = Loopback.connect(port: port)!
    defer { for socket in [listener, filler] { Loopback.close(socket) } }
    let task = put(SocketTransport(), HTTPURL("http://127.0.0.1:\(port)/a")!, PatternSource(length: 1))
    while !isConnecting(to: port) { await Task.yield() }
    await cancel(task)
  }

  @Test func endsDuringTheTLSHandshake() async {
    let peer = ScriptedPeer([.read(5), .hold])
    let task = put(SocketTransport(), peer.url(scheme: "https"), PatternSource(length: 1))
    await peer.wait { $0.steps.first == 1 }
    await cancel(task)
  }

  @Test func endsWhileSending() async {
    let peer = ScriptedPeer([.readHead, .hold])
    let task = put(SocketTransport(), peer.url(), PatternSource(length: 1 << 40))
    await peer.wait { $0.steps.first == 1 }
    await cancel(task)
  }

  @Test func endsWhileWaitingForTheAnswer() async {
    let peer = ScriptedPeer([.readRequest, .hold])
    let task = put(SocketTransport(), peer.url(), PatternSource(length: 100_000))
    await peer.wait { $0.steps.first == 1 }
    await cancel(task)
  }

  @Test func endsASourceThatListens() async {
    let peer = ScriptedPeer([.discard])
    let source = FaultySource(PatternSource(length: 1 << 20), .stall(at: 300_000))
    let task = put(SocketTransport(), peer.url(), source)
    while source.reads < 2 { await Task.yield() }
    await cancel(task)
  }

  @Test(arguments: [10, 1 << 20])
  func doesNotWaitForASourceThatIsStuck(_ length: Int64) async throws {
    let gate = Monitor((entered: 0, open: false))
    let stuck = ListSource(pieces: [[1]], length: length) {
      gate.update { $0.entered += 1 }
      gate.wait { $0.open ? () : nil }
    }
    let peer = ScriptedPeer([.readHead, .discard], [.readRequest, answer()])
    let transport = SocketTransport(.init(connections: 1))
    let task = put(transport, peer.url(), stuck)
    while gate.update({ $0.entered }) == 0 { await Task.yield() }
    let next = Task { try await transport.put(peer.url("/b"), PatternSource(length: 9)) }
    await cancel(task)
    // Another worker replaces this one, whose thread is still in the source. The small body had not reached the peer.
    if length > 10 { #expect(try await next.value.status == 200) } else { next.cancel() }
    _ = await next.result
    gate.update { $0.open = true }
    await peer.wait { $0.ended >= 1 || length == 10 }
  }

  @Test func endsAReceiverThatIsStuck() async {
    let peer = ScriptedPeer([.readRequest, answer("200 OK", "content"), .hold])
    let gate = Monitor((entered: false, open: false))
    let transport = SocketTransport()
    let task = Task {
      try await transport.send(
        HTTPRequest("GET", peer.url()), body: nil,
        Exchange(received: { _ in
          gate.update { $0.entered = true }
          gate.wait { $0.open ? () : nil }
        }))
    }
    while !gate.update({ $0.entered }) { await Task.yield() }
    await cancel(task)
    gate.update { $0.open = true }
  }

  /// Covers races by chance: each send returns once, with a response or with `.cancelled`.
  @Test func aRequestCanBeCancelledAtAnyMoment() async {
    let peer = ScriptedPeer(Array(repeating: [.readRequest, answer()], count: 200).flatMap { $0 })
    let transport = SocketTransport(.init(connections: 6))
    let (answered, cancelled) = (Tally(), Tally())
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<24 {
        group.addTask {
          for round in 0..<25 {
            let size = [0, 50_000, 200_000][(number + round) % 3]
            let source = ListSource(
              pieces: [[UInt8](repeating: 1, count: size)].filter { !$0.isEmpty }, length: Int64(size))
            let task = put(transport, peer.url(), source)
            for _ in 0..<((number * 31 + round * 17) % 60) { await Task.yield() }
            task.cancel()
            switch await task.result {
            case .success: answered.add(1)
            case .failure(let error as TransportError) where error.code == .cancelled: cancelled.add(1)
            case .failure(let error): Issue.record("\(error)")
            }
          }
        }
      }
    }
    #expect(answered.value + cancelled.value == 600)
    #expect(cancelled.value > 0)
  }
}
