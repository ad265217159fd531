import BlobUpload
import Blobs

extension ProtocolCheck {
  /// All checks but those with random faults, which `chaos(seed:)` makes.
  public static let all = calm + faults

  /// Checks without broken connections.
  package static let calm =
    [
      ProtocolCheck("any length arrives whole", arrivesWhole),
      ProtocolCheck("the same bytes again are a success", acceptsTheSameAgain),
      ProtocolCheck("other bytes under the name are refused, and the old ones stay", refusesOtherBytes),
      ProtocolCheck("overwriting replaces", overwrites),
      ProtocolCheck("an unknown length arrives whole", arrivesWithoutLength),
      ProtocolCheck("an unfinished upload can be deleted", aborts),
    ]

  private static func arrivesWhole(_ exam: ProtocolCheckContext) async throws {
    let part = exam.fixture.partSize ?? 300_000
    let whole = exam.fixture.wholeUpTo
    let lengths = [0, 1, 1000, part - 1, part, part + 1, whole - 1, whole, whole + 1, 9 << 20]
    for length in lengths {
      let pattern = PatternSource(length: length, seed: UInt64(length))
      _ = try await exam.uploader().upload(pattern, as: BytePath("of \(length)"))
      try await exam.expect(pattern, at: BytePath("of \(length)"))
    }
    let names = await exam.ask { Set($0.names()) }
    try require(names == Set(lengths.map { BytePath("of \($0)") }), "published were \(names)")
    let left = await exam.ask { $0.unfinished() }
    try require(left == 0, "\(left) bytes of unfinished uploads were left behind")
  }

  private static func acceptsTheSameAgain(_ exam: ProtocolCheckContext) async throws {
    for length: Int64 in [0, 1000, 900_000] {
      let pattern = PatternSource(length: length)
      let name = BytePath("of \(length)")
      _ = try await exam.uploader().upload(pattern, as: name)
      var refusal: UploadError?
      do { _ = try await exam.uploader().upload(pattern, as: name) } catch { refusal = error }
      let isKnown = exam.fixture.tellsDigests || length <= exam.fixture.wholeUpTo
      try require(
        (refusal == nil) == isKnown, "\(length) bytes again: \(refusal.map { "\($0)" } ?? "taken for the same")")
      try await exam.expect(pattern, at: name)
    }
  }

  private static func refusesOtherBytes(_ exam: ProtocolCheckContext) async throws {
    for (length, other) in [(1000, 1000), (900_000, 900_000), (900_000, 800_000), (1000, 900_000)] as [(Int64, Int64)] {
      let pattern = PatternSource(length: length, seed: 1)
      let name = BytePath("\(length) and \(other)")
      _ = try await exam.uploader().upload(pattern, as: name)
      let before = exam.transport.sent
      do {
        _ = try await exam.uploader().upload(PatternSource(length: other, seed: 2), as: name)
      } catch {
        try require(error.recovery == .giveUp && error.side == .file, "not .giveUp and .file, but \(error)")
        let sent = exam.transport.sent - before
        try require(
          sent <= other + exam.fixture.overhead, "\(sent) bytes were sent of \(other), to learn that the name is taken")
        try await exam.expect(pattern, at: name)
        continue
      }
      throw CheckFailure("\(other) other bytes were taken for \(length)")
    }
  }

  private static func overwrites(_ exam: ProtocolCheckContext) async throws {
    for (length, other) in [(1000, 1000), (900_000, 900_000), (900_000, 10), (0, 500_000)] as [(Int64, Int64)] {
      let name = BytePath("\(length) then \(other)")
      _ = try await exam.uploader().upload(PatternSource(length: length, seed: 1), as: name, overwrite: true)
      let pattern = PatternSource(length: other, seed: 2)
      _ = try await exam.uploader().upload(pattern, as: name, overwrite: true)
      try await exam.expect(pattern, at: name)
    }
  }

  private static func arrivesWithoutLength(_ exam: ProtocolCheckContext) async throws {
    for length: Int64 in [0, 1, 1000, 70_000, exam.fixture.wholeUpTo, 1_500_000] {
      let name = BytePath("of \(length)")
      let pattern = PatternSource(length: length, access: .sequential, knowsLength: false)
      var uploader = exam.uploader()
      if !exam.fixture.takesUnknownLength {
        // A source that fits in memory has a known length. If it fills the memory exactly, its end is not known yet.
        uploader.spool.memory = max(2, Int(length))
        if length >= 2 {
          try await exam.expect(.file, "an unknown length") { [uploader] in
            _ = try await uploader.upload(pattern, as: name)
          }
          try await exam.expectNothing(at: name)
        }
        uploader.spool.memory = Int(length) + 2
      }
      _ = try await uploader.upload(pattern, as: name)
      try await exam.expect(pattern, at: name)
    }
  }

  private static func aborts(_ exam: ProtocolCheckContext) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let pattern = PatternSource(length: 4 << 20)
    let broken = FaultySource(pattern, .fail(at: 3 << 20, BlobError(.io, "the card was pulled out")))
    // The source fails only after the server has stored what was sent before. Otherwise the server could create an
    // unfinished upload after the check for unfinished uploads below.
    let failing = exam.interrupted(broken, at: 3 << 20) {}
    try await exam.expect(.source, "a source that fails") {
      _ = try await exam.uploader(journal).upload(failing, as: "video")
    }
    for entry in try await journal.unfinished() {
      if let session = entry.sessionWithParts { await exam.uploader().discard(session) }
    }
    await journal.close()
    // A protocol without resumption may remove the incomplete upload asynchronously.
    await exam.ask { peer in pollUntil { peer.unfinished() == 0 } }
    let left = await exam.ask { $0.unfinished() }
    try require(left == 0, "\(left) bytes were left behind")
    try await exam.expectNothing(at: "video")
  }
}
