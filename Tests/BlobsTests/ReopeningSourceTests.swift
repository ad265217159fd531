import BlobTesting
import TestSupport
import Blobs
import Testing

struct ReopeningSourceTests {
  private let pattern = PatternSource(length: 10_000)

  @Test func lossIsMadeUpForAtTheSameByte() throws {
    let faulty = FaultySource(pattern, .invalidate(at: 0, times: 1), .invalidate(at: 777, times: 3))
    #expect(try ReopeningSource(faulty).readAll(upTo: 100) == pattern.bytes(count: 10_000))
    #expect(faulty.openings == 5)
  }

  @Test func givesUpAfterSomeOpeningsWithoutAByte() {
    let faulty = FaultySource(pattern, .invalidate(at: 777, times: .max))
    let error = failure { () throws(BlobError) in try ReopeningSource(faulty, attempts: 4).readAll() }
    #expect(error?.code == .invalidated)
    #expect(error?.message == "the source was lost at byte 777")
    #expect(faulty.openings == 5)
  }

  @Test func progressGivesNewAttempts() throws {
    // Two losses at each of 20 offsets; two consecutive losses are allowed.
    let losses = (1...20).map { Int64($0 * 100) }
    var source: any BlobSource = pattern
    for byte in losses { source = FaultySource(source, .invalidate(at: byte, times: 2)) }
    #expect(try ReopeningSource(source, attempts: 2).readAll() == pattern.bytes(count: 10_000))
  }

  @Test func otherVersionIsChangedNotMixed() throws {
    let faulty = FaultySource(
      pattern, .invalidate(at: 777, times: 1), .replaced(by: PatternSource(length: 10_000, seed: 1), from: 2))
    let reader = try ReopeningSource(faulty).open(at: 0, Cancellation())
    #expect(try readNext(reader, 777) == pattern.bytes(count: 777))
    let error = failure { () throws(BlobError) in try readNext(reader, 1) }
    #expect(error?.code == .changed)
    #expect((error?.cause as? BlobError)?.code == .invalidated)
    #expect(faulty.openings == 2)
  }

  @Test func shorterVersionIsChangedEvenWhereItsEndLies() throws {
    let faulty = FaultySource(
      pattern, .invalidate(at: 777, times: 1), .replaced(by: PatternSource(length: 777), from: 2))
    #expect(failure { () throws(BlobError) in try ReopeningSource(faulty).readAll() }?.code == .changed)
  }

  @Test func aSourceWithoutValidatorIsNotOpenedAgain() throws {
    let pipe = BlobPipe()
    let faulty = FaultySource(PipeSource(pipe), .invalidate(at: 0, times: 1))
    #expect(failure { () throws(BlobError) in try ReopeningSource(faulty).readAll() }?.code == .invalidated)
    #expect(faulty.openings == 1)
  }

  @Test func lossWhileOpeningCountsToo() throws {
    let lost = BlobError(.invalidated, "not there yet")
    let twice = FaultySource(pattern, .failOpening(lost, times: 2))
    #expect(try ReopeningSource(twice).readAll() == pattern.bytes(count: 10_000))
    #expect(twice.openings == 3)
    let always = FaultySource(pattern, .failOpening(lost))
    #expect(failure { () throws(BlobError) in try ReopeningSource(always).readAll() }?.code == .invalidated)
    #expect(always.openings == 4)
  }

  @Test func otherErrorsAreNotItsBusiness() {
    for code in [BlobError.Code.io, .changed, .truncated, .cancelled, .notFound] {
      let faulty = FaultySource(pattern, .fail(at: 5, BlobError(code, "on purpose")))
      #expect(failure { () throws(BlobError) in try ReopeningSource(faulty).readAll() }?.code == code)
      #expect(faulty.openings == 1)
    }
  }

  /// A photo for which the system gives no sign is lost after half an hour; four such times would be two hours.
  @Test func reopeningEndsAfterLongOpenings() {
    let lost = BlobError(.invalidated, "not there yet")
    let opening = FaultySource(pattern, .failOpening(lost))
    let error = failure { () throws(BlobError) in try ReopeningSource(opening, patience: .zero).readAll() }
    #expect(error?.code == .invalidated)
    #expect(opening.openings == 1)
    // Nor is it opened again after a read that has failed.
    let reading = FaultySource(pattern, .invalidate(at: 777, times: .max))
    let slow = ReopeningSource(reading, patience: .zero)
    #expect(failure { () throws(BlobError) in try slow.readAll() }?.code == .invalidated)
    #expect(reading.openings == 1)
  }
}
