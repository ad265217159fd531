import BlobUpload
import Blobs

extension ProtocolCheck {
  /// Random faults on every connection: in the end every byte is right, and nothing was ever published that was not
  /// whole. The same seed breaks the same connections at the same bytes.
  public static func chaos(seed: UInt64) -> ProtocolCheck {
    ProtocolCheck("survives chaos of seed \(seed)") { exam in try await survives(seed, exam) }
  }

  private static func survives(_ seed: UInt64, _ exam: ProtocolExam) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let proxy = ChaosProxy(
      to: exam.peer.endpoint.port,
      ChaosProxy.Schedule(seed: seed, count: 24, span: 600_000, longest: .milliseconds(10)))
    let patterns = (0..<5).map { number in
      PatternSource(length: Int64(truncatingIfNeeded: (seed &+ number) &* 0x9E37_79B9 % 900_000), seed: seed &+ number)
    }
    // First with little patience: some give up, and leave what they have.
    for retries in [1, 60] {
      let failures = try await send(patterns, exam.uploader(through: proxy, journal, retries: retries))
      for (number, pattern) in patterns.enumerated() {
        if failures.contains(number) {
          // A lost answer may have followed a success.
          let isThere = await exam.ask { $0.contents(of: BytePath("\(number)")) != nil }
          if !isThere { continue }
        }
        try await exam.expect(pattern, at: BytePath("\(number)"))
      }
      if retries > 1 { try require(failures.isEmpty, "\(failures.sorted()) failed of \(patterns)") }
    }
    let names = await exam.ask { $0.names() }
    try require(names.count == patterns.count, "published were \(names)")
    await journal.close()
  }

  /// All at once. Returns the numbers of those that failed.
  private static func send(_ patterns: [PatternSource], _ uploader: Uploader) async throws -> Set<Int> {
    await withTaskGroup(of: Int?.self) { group in
      for (number, pattern) in patterns.enumerated() {
        group.addTask {
          do {
            _ = try await uploader.upload(pattern, as: BytePath("\(number)"))
            return nil
          } catch {
            return number
          }
        }
      }
      return await group.reduce(into: []) { failed, number in if let number { failed.insert(number) } }
    }
  }
}
