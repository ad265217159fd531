import BlobTesting
import TestSupport
import Blobs
import Testing

struct ProgressSourceTests {
  private typealias Position = ProgressSource.Position

  @Test func progressComesAtIntervalsAndAtTheEnd() throws {
    let clock = ManualClock()
    let positions = Monitor<[Position]>([])
    let source = ProgressSource(PatternSource(length: 10), every: .seconds(1), clock: clock) { position in
      positions.update { $0.append(position) }
    }
    let reader = try source.open(at: 2, Cancellation())
    for _ in 0..<8 {
      _ = try readNext(reader, 1)
      clock.advance(.milliseconds(400))
    }
    #expect(try readNext(reader, 1) == [])
    let offsets = positions.update { $0 }
    #expect(offsets.map(\.offset) == [2, 6, 9, 10])
    #expect(offsets.map(\.isAtEnd) == [false, false, false, true], "and the end but once")
    #expect(offsets.allSatisfy { $0.length == 10 })
  }

  @Test func anUnknownLengthIsReportedAtTheEnd() throws {
    let positions = Monitor<[Position]>([])
    let source = ProgressSource(PatternSource(length: 10, knowsLength: false), every: .seconds(3600)) { position in
      positions.update { $0.append(position) }
    }
    _ = try source.readAll()
    #expect(
      positions.update { $0 } == [
        Position(offset: 0, length: nil, isAtEnd: false), Position(offset: 10, length: nil, isAtEnd: true),
      ])
  }

  @Test func failureIsNotTheEnd() throws {
    let ends = Counter()
    let faulty = FaultySource(PatternSource(length: 10), .fail(at: 5, BlobError(.io, "a bad sector")))
    let source = ProgressSource(faulty, every: .zero) { if $0.isAtEnd { ends.add() } }
    #expect(failure { () throws(BlobError) in try source.readAll() }?.message == "a bad sector")
    #expect(ends.count == 0)
  }

  @Test func emptySourceIsAtItsEndAtOnce() throws {
    let ends = Counter()
    _ = try ProgressSource(DataSource([])) { if $0.isAtEnd { ends.add() } }.readAll()
    #expect(ends.count == 1)
  }
}
