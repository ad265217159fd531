import BlobHTTP
import BlobSQLite
import Platform
import Testing

@testable import BlobCrypto
@testable import BlobUpload
@testable import Blobs

extension JournalTests {
  /// Tests records of sent bytes: a file whose metadata has changed is resumed only if it has the same bytes.
  @Suite struct Sent {
    let folder = JournalFolder()
    private static let key = Array(UInt8(1)...32)
    private static let value = Array(UInt8(1)...16)
    private let range = SentRange(start: 10, end: 40, key: Self.key, value: Self.value)
    private let moved = intent(instance: "another inode")

    @Test func otherNumbersOfTheSameVersionRaiseADoubt() async throws {
      let first = try await folder.open()
      let id = try #require(try await first.claim().id)
      first.opened(id, session)
      try await first.flush()
      first.sending(id, from: 10, key: Self.key)(40, Self.value)
      #expect(try await first.only().sent == [range], "also while it is under way")
      await first.close()
      #expect(!folder.names.contains { $0.description.contains("-sent-") })

      let second = try await folder.open()
      let claim = try await second.claim(moved)
      #expect(claim.name == "unsure")
      #expect(claim.entry?.session == session)
      #expect(claim.entry?.sent == [range])
      // Until the file is recognized, the next run must compare it too.
      #expect(claim.entry?.intent == intent())
      second.recognized(id, try #require(moved.validator))
      await second.close()

      let third = try await folder.open()
      #expect(try await third.claim(moved).name == "resume")
      third.restarted(id)
      third.opened(id, session)
      #expect(try await third.only().sent == [])
      await third.close()
    }

    @Test func anUploadWithoutASessionIsResumedWithoutAComparison() async throws {
      let first = try await folder.open()
      _ = try await first.claim()
      await first.close()
      let second = try await folder.open()
      #expect(try await second.claim(moved).name == "resume")
      #expect(try await second.only().intent == moved)
      await second.close()
    }

    @Test func aFailureKeepsWhatWasSentForTheNextAttemptOfTheSameProcess() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      try await journal.flush()
      journal.sending(id, from: 10, key: Self.key)(40, Self.value)
      journal.failed(id, "no")
      #expect(try await journal.claim(moved).entry?.sent == [range])
      // The second range of this process does not replace the first one.
      journal.sending(id, from: 30, key: Self.key)(60, Self.value)
      #expect(try await journal.only().sent.map(\.start) == [10, 30])
      journal.done(id, UploadResult())
      try await journal.flush()
      let database = try Database(folder.path)
      #expect(try database.statement("SELECT count(*) FROM sent").first { $0.int(0) } == 0)
      await journal.close()
    }

    @Test func aKillLosesNoByteOfIt() async throws {
      let folder = JournalFolder(for: "sent")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        let journal = try await Journal(at: JournalFolder.pathInParent("sent"))
        let ids = try await journal.claim(
          ["a", "b", "c"].map { intent($0) }, destination: journal.destinationID(.tus)
        ).compactMap(\.id)
        for id in ids { journal.opened(id, session) }
        try await journal.flush()
        for (number, id) in ids.enumerated() {
          let record = journal.sending(id, from: 0, key: Array(1...32))
          for end in 1...(7 + Int64(number)) { record(end, Array(1...16)) }
        }
        kill(getpid(), SIGKILL)
      }
      #expect(folder.names.contains { $0.description.contains("-sent-") })
      let journal = try await folder.open()
      #expect(try await journal.unfinished().map { $0.sent.map(\.end) } == [[7], [8], [9]])
      #expect(!folder.names.contains { $0.description.contains("-sent-") })
      await journal.close()
      let again = try await folder.open()
      #expect(try await again.claim(intent("b", instance: "new")).entry?.sent.map(\.end) == [8])
      await again.close()
    }

    @Test(arguments: [
      (2, ["sent", "host", "override", "width", "listing"]), (3, ["host", "override", "width", "listing"]),
      (4, ["override", "width", "listing"]), (5, ["width", "listing"]), (6, ["listing"]), (7, []),
    ])
    func aJournalOfAnEarlierFormatGainsWhatItLacks(_ version: Int, _ tables: [String]) async throws {
      let first = try await folder.open()
      let id = try #require(try await first.claim().id)
      first.opened(id, session)
      await first.close()
      let drops = tables.map { "DROP TABLE \($0);" }.joined() + "ALTER TABLE upload DROP COLUMN sent_length;"
      try Database(folder.path).execute("\(drops) PRAGMA user_version=\(version)")
      let second = try await folder.open()
      let claim = try await second.claim(moved)
      #expect(claim.name == "unsure")
      #expect(claim.entry?.sent == [])
      try await second.hosts.keepLargestBody(1000, at: "http://nas:80")
      #expect(try await second.hosts.largestBody(at: "http://nas:80") == 1000)
      try await second.hosts.keepOverride(true, at: "http://nas:80")
      #expect(try await second.hosts.needsOverride(at: "http://nas:80"))
      try await second.hosts.keepWidth(LearnedConcurrency(width: 12, wasRefused: true), at: "http://nas:80")
      #expect(try await second.hosts.width(at: "http://nas:80") == LearnedConcurrency(width: 12, wasRefused: true))
      #expect(try await second.hosts.width(at: "http://elsewhere:80") == nil)
      await second.close()
    }

    @Test func recordsOfADeletedJournalAreIgnored() async throws {
      let stale = folder.folder.appending("journal-sent-1")
      let descriptor = stale.withCString { creat($0, 0o600) }
      let record = [1, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 120)
      #expect(write(descriptor, record, record.count) == record.count)
      close(descriptor)
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      #expect(try await journal.only().sent == [])
      await journal.close()
    }
  }

  /// Tests of the comparison itself.
  @Suite struct Matches {
    private let pattern = PatternBytes(100_000)

    private func matches(_ ranges: [SentRange], _ source: PatternBytes? = nil, upTo end: Int64) throws -> Bool {
      let source = source ?? pattern
      return try ranges.match(source.source, try source.source.info(Cancellation()), upTo: end, Cancellation())
    }

    @Test func everyByteBeforeTheEndMustBeCoveredAndTheSame() throws {
      let ranges = [pattern.range(50_000, 90_000), pattern.range(0, 60_000)]
      #expect(try matches(ranges, upTo: 80_000))
      #expect(try matches(ranges, upTo: 90_000))
      #expect(try !matches(ranges, upTo: 90_001))
      #expect(try matches([], upTo: 0))
      #expect(try !matches([], upTo: 1))
      #expect(try !matches([pattern.range(1, 90_000)], upTo: 10))
      // An all-zero key would give the checksum zero for any bytes: such a range records only its end.
      let unsummed = SentRange(start: 0, end: 90_000, key: SentRange.noKey, value: SentRange.noValue)
      #expect(try !matches([unsummed], upTo: 10))
      for byte in [0, 31_000, 59_999, 75_000] {
        #expect(try !matches(ranges, pattern.changed(at: byte), upTo: 80_000), "\(byte)")
      }
      #expect(try matches(ranges, pattern.changed(at: 90_000), upTo: 80_000))
      #expect(try !matches([pattern.range(0, 100_000)], PatternBytes(99_999), upTo: 10))
    }
  }
}

/// Bytes in memory, and ranges that were sent of them.
private struct PatternBytes {
  var bytes: [UInt8]

  init(_ count: Int) { bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

  var source: DataSource { DataSource(bytes) }

  func range(_ start: Int, _ end: Int) -> SentRange {
    let key = KeyedChecksum.newKey()
    let checksum = KeyedChecksum(key: key)
    bytes[start..<end].withUnsafeBytes { checksum.update($0) }
    return SentRange(start: Int64(start), end: Int64(end), key: key, value: checksum.value())
  }

  func changed(at index: Int) -> PatternBytes {
    var copy = self
    copy.bytes[index] ^= 1
    return copy
  }
}
