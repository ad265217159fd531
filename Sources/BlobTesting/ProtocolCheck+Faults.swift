import BlobHTTP
import BlobUpload
import Blobs

extension ProtocolCheck {
  /// Checks with faults during an upload.
  static let faults = [
    ProtocolCheck("an answer that is lost costs nothing but time", survivesLostAnswers),
    ProtocolCheck("a connection cut anywhere is made up for", survivesCuts),
    ProtocolCheck("what was cut off goes on where it stopped", resumes),
    ProtocolCheck("an unknown length goes on where it stopped", resumesWithoutLength),
    ProtocolCheck("a server that is started again goes on where it stopped", survivesRestart),
    ProtocolCheck("a session that is gone is begun anew", survivesLostSession),
    ProtocolCheck("a source that fails or changes publishes nothing", publishesNoBrokenSource),
    ProtocolCheck("two versions of a source are never mixed", mixesNoVersions),
    ProtocolCheck("cancelling ends at once and can be resumed", cancels),
    ProtocolCheck("bytes that change on the way are sent again", noticesChanges),
  ]

  private static func survivesLostAnswers(_ exam: ProtocolCheckContext) async throws {
    for number in 0..<5 {
      for length: Int64 in [1000, 900_000] {
        let pattern = PatternSource(length: length, seed: UInt64(number))
        let name = BytePath("\(length), answer \(number)")
        let lossy = FaultyTransport(exam.transport) { count, _ in count == number ? .loseAnswer : .none }
        _ = try await exam.uploader(over: lossy).upload(pattern, as: name)
        try await exam.expect(pattern, at: name)
      }
    }
    let names = await exam.ask { $0.names() }
    try require(names.count == 10, "10 names were meant to be there, not \(names)")
  }

  private static func survivesCuts(_ exam: ProtocolCheckContext) async throws {
    let faults: [ChaosProxy.Fault] = [
      .cutUp(after: 1), .cutUp(after: 100), .cutUp(after: 1000), .cutUp(after: 70_000), .cutUp(after: 800_000),
      .reset(after: 500), .reset(after: 400_000), .cutDown(after: 5), .cutDown(after: 100), .dropResponse(1),
      .dropResponse(2), .dropResponse(3), .late(after: 400, taking: 20_000, over: .milliseconds(50)),
      .late(after: 40_000, taking: 500_000, over: .milliseconds(50)),
    ]
    for fault in faults {
      for length: Int64 in [50_000, 1_000_000] {
        let pattern = PatternSource(length: length, seed: UInt64(length))
        let name = BytePath("\(length), \(fault)")
        // Two faults, so that the retry's connection is broken as well.
        _ = try await exam.uploader(through: exam.proxy(fault, fault)).upload(pattern, as: name)
        try await exam.expect(pattern, at: name)
      }
    }
  }

  /// Checks the total of bytes sent when a body is cut off at byte `cut` and the server has stored all but `slack` of
  /// it. With a protocol that resumes, the total is little more than the length; otherwise the lost bytes are sent
  /// again.
  private static func requireFewSent(_ exam: ProtocolCheckContext, _ sent: Int64, _ length: Int64, cut: Int64) throws {
    // The server may be behind by `slack`, and the bytes after the cut may have been in socket buffers; those are sent
    // twice. The bytes before the cut are sent once. A restart from the beginning sends `length + cut`.
    let most = length + (length - cut) + ProtocolCheckContext.slack
    precondition(most < length + cut - ProtocolCheckContext.slack, "the cut is too early to tell")
    if exam.fixture.resumes {
      try require(sent <= most, "\(sent) bytes were sent of \(length), which were cut at \(cut)")
    } else {
      try require(
        sent > length + cut - ProtocolCheckContext.slack, "\(sent) bytes were sent: declared not to resume, it does")
    }
  }

  private static func resumes(_ exam: ProtocolCheckContext) async throws {
    let pattern = PatternSource(length: 9 << 20)
    let cut: Int64 = 6 << 20
    let proxy = exam.proxy()
    let source = exam.interrupted(pattern, at: cut) { proxy.cutAll() }
    _ = try await exam.uploader(through: proxy).upload(source, as: "video")
    try await exam.expect(pattern, at: "video")
    try requireFewSent(exam, exam.transport.read, pattern.length, cut: cut)
  }

  private static func resumesWithoutLength(_ exam: ProtocolCheckContext) async throws {
    guard exam.fixture.takesUnknownLength else { return }
    let pattern = PatternSource(length: 9 << 20, access: .sequential, knowsLength: false)
    let cut: Int64 = 6 << 20
    let proxy = exam.proxy()
    let source = exam.interrupted(pattern, at: cut) { proxy.cutAll() }
    _ = try await exam.uploader(through: proxy).upload(source, as: "stream")
    try await exam.expect(pattern, at: "stream")
    try requireFewSent(exam, exam.transport.read, pattern.length, cut: cut)
  }

  private static func survivesRestart(_ exam: ProtocolCheckContext) async throws {
    let pattern = PatternSource(length: 9 << 20)
    let cut: Int64 = 6 << 20
    let failure = Monitor<(any Error)?>(nil)
    let source = exam.interrupted(pattern, at: cut) { [peer = exam.peer] in
      do { try peer.restart() } catch { failure.update { $0 = error } }
    }
    _ = try await exam.uploader().upload(source, as: "video")
    if let error = failure.update({ $0 }) { throw error }
    try await exam.expect(pattern, at: "video")
    try requireFewSent(exam, exam.transport.read, pattern.length, cut: cut)
  }

  private static func survivesLostSession(_ exam: ProtocolCheckContext) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let pattern = PatternSource(length: 4 << 20)
    let proxy = exam.proxy()
    let isCut = Monitor(false)
    let source = exam.interrupted(pattern, at: 3 << 20) {
      proxy.cutAll()
      isCut.update { $0 = true }
    }
    // Discards the session once, before the first request after the cut.
    let transport = CountingTransport(exam.transport) { _ in
      let isTime = isCut.update { isCut in
        defer { isCut = false }
        return isCut
      }
      if !isTime { return }
      // An unreadable journal also fails the upload, so the error is ignored here.
      for entry in (try? await journal.unfinished()) ?? [] {
        if let session = entry.sessionWithParts { await exam.uploader(through: proxy).discard(session) }
      }
    }
    _ = try await exam.uploader(over: transport, through: proxy, journal).upload(source, as: "video")
    try await exam.expect(pattern, at: "video")
    try require(transport.read > 6 << 20, "only \(transport.read) bytes were sent: the session was not lost")
    await journal.close()
  }

  private static func publishesNoBrokenSource(_ exam: ProtocolCheckContext) async throws {
    for length: Int64 in [1000, 2_000_000] {
      let pattern = PatternSource(length: length)
      let at = length / 3 * 2
      let broken = [
        FaultySource(pattern, .fail(at: at, BlobError(.changed, "it is another one now"))),
        FaultySource(pattern, .fail(at: at, BlobError(.io, "the card was pulled out"))),
        FaultySource(pattern, .truncate(at: at)), FaultySource(pattern, .changedAtEnd),
      ]
      for (number, source) in broken.enumerated() {
        let name = BytePath("\(length), \(number)")
        try await exam.expect(.source, "\(name)") { _ = try await exam.uploader().upload(source, as: name) }
        try await exam.expectNothing(at: name)
        _ = try await exam.uploader().upload(pattern, as: name)
        try await exam.expect(pattern, at: name)
      }
    }
  }

  private static func mixesNoVersions(_ exam: ProtocolCheckContext) async throws {
    let old = PatternSource(length: 4 << 20, seed: 1)
    let new = PatternSource(length: 4 << 20, seed: 2)
    let proxy = exam.proxy()
    // With concurrent parts, an earlier part may already have detected the new version and ended the upload.
    let cut = exam.interrupted(old, at: 3 << 20, within: .seconds(1)) { proxy.cutAll() }
    // Each part opens the source once, so this is the opening after the cut.
    let openings = 1 + (exam.fixture.partSize.map { Int((3 << 20) / $0) } ?? 0)
    let source = FaultySource(cut, .replaced(by: new, from: openings + 1))
    try await exam.expect(.source, "a source that was replaced") {
      let target = exam.uploader(through: proxy).destination.target("video", length: old.length)
      _ = try await exam.uploader(through: proxy).upload(source, old.info, to: target)
    }
    try await exam.expectNothing(at: "video")
    _ = try await exam.uploader().upload(new, as: "video")
    try await exam.expect(new, at: "video")
  }

  /// For a protocol without detection, the change must arrive; otherwise the proxy would be ineffective.
  private static func noticesChanges(_ exam: ProtocolCheckContext) async throws {
    for length: Int64 in [50_000, 2_000_000] {
      let pattern = PatternSource(length: length)
      // If every request has its own connection, the first connections carry no content. With concurrent parts, each
      // connection carries only a share, in unknown order.
      let fixture = exam.fixture
      let isShared = fixture.partsAtOnce > 1
      let place = isShared ? min(length / 8, 50_000) : min(length, fixture.partSize ?? length) / 2
      let flips = [ChaosProxy.Fault](repeating: .flip(at: Int(place)), count: isShared ? 8 : 4)
      let proxy = ChaosProxy(to: exam.peer.endpoint.port, ChaosProxy.Schedule(flips))
      let name = BytePath("\(length)")
      _ = try await exam.uploader(through: proxy).upload(pattern, as: name)
      let faults = proxy.counters.faults
      try require(faults > 0, "the proxy changed nothing")
      if exam.fixture.noticesChanges {
        try await exam.expect(pattern, at: name)
        continue
      }
      let found = await exam.ask { $0.contents(of: name) } ?? []
      let wrong = found.withUnsafeBytes { pattern.verify($0, at: 0) }
      try require(found.count == Int(length) && wrong != nil, "declared not to notice a change, it does")
    }
  }

  private static func cancels(_ exam: ProtocolCheckContext) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let pattern = PatternSource(length: 9 << 20)
    let cut: Int64 = 6 << 20
    let (reached, signal) = AsyncStream<Void>.makeStream()
    let stalled = FaultySource(exam.interrupted(pattern, at: cut) { signal.finish() }, .stall(at: cut + 1))
    let uploader = exam.uploader(journal)
    // The task ends below. If the upload fails before the cancellation, the stream ends too.
    let task = Task {
      defer { signal.finish() }
      return try await uploader.upload(stalled, as: "video")
    }
    for await _ in reached {}
    task.cancel()
    try await deadline(.seconds(10), "an upload that was cancelled") {
      try await exam.expect(.cancelled, "cancelling") { _ = try await task.value }
    }
    try await exam.expectNothing(at: "video")

    let before = exam.transport.read
    _ = try await exam.uploader(journal).upload(pattern, as: "video")
    try await exam.expect(pattern, at: "video")
    // The bytes sent before the cut count as well.
    try requireFewSent(exam, exam.transport.read - before + cut, pattern.length, cut: cut)
    await journal.close()
  }
}
