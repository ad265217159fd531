import Blobs
import Platform

extension SourceCheck {
  /// All checks of the contract of sources.
  public static let all = [
    SourceCheck("its facts are those declared", hasItsFacts),
    SourceCheck("reads of any size give the same bytes", readsInAnySize),
    SourceCheck("what a file lends is what is read", lendsWhatIsRead),
    SourceCheck("opens at the start, in the middle, at the end, not past it", opensAnywhere),
    SourceCheck("gives the rest from every offset of a small source", opensAtEveryOffset),
    SourceCheck("the end stays the end", endsForGood),
    SourceCheck("nothing changed, so finish() passes", finishes),
    SourceCheck("two readers do not disturb each other", readersAreIndependent),
    SourceCheck("a sequential source goes on where its last reader stopped", goesOnInSequence),
    SourceCheck("a slice is exactly its range", slicesExactly),
    SourceCheck("a slice of another version is refused", refusesOtherVersion),
    SourceCheck("what is cancelled is not begun", cancelsBeforehand),
    SourceCheck("cancelling ends a wait", cancelsWhileWaiting),
  ]

  private static func hasItsFacts(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    try require(exam.source.access == fixture.access, "access is .\(exam.source.access)")
    let info = try exam.source.info(exam.cancel)
    try require(info.length == (fixture.knowsLength ? fixture.length : nil), "the length is \(info.length as Any)")
    try require((info.validator != nil) == fixture.hasValidator, "the validator is \(info.validator as Any)")
    try require(info.preferredRead >= 0, "preferredRead is \(info.preferredRead)")
    let reader = try exam.open(at: 0)
    try require(reader.info == info, "its reader says \(reader.info), itself \(info)")
    let region = reader.fileRegion()
    try require((region != nil) == fixture.lendsFile, "fileRegion() is \(region as Any)")
    if exam.isRandom {
      try require(try exam.open(at: fixture.length).info == info, "a reader at the end has other info")
      let again = try exam.source.info(exam.cancel)
      try require(again == info, "asked again it says \(again), at first \(info)")
    }
  }

  private static func readsInAnySize(_ fixture: SourceFixture) throws {
    for size in [1, 7, 4096, 1 << 20] {
      // Small reads are slow in a debug build, so fewer bytes are read.
      for range in parts(of: fixture, within: size < 4096 ? 10_000 : 3 << 20) {
        let exam = try Examination(fixture)
        let reader = try exam.open(at: range.lowerBound)
        try exam.compare(reader, from: range.lowerBound, to: range.upperBound, upTo: size)
        if range.upperBound == fixture.length { try exam.expectEnd(reader) }
      }
    }
  }

  private static func lendsWhatIsRead(_ fixture: SourceFixture) throws {
    for offset in fixture.lendsFile ? Set([0, 1, fixture.length / 2]).filter({ $0 <= fixture.length }) : [] {
      let exam = try Examination(fixture)
      let reader = try exam.open(at: offset)
      guard let region = reader.fileRegion() else {
        throw CheckFailure("a reader at byte \(offset) lends nothing")
      }
      let start = offset + region.start
      let length = region.length ?? fixture.length - start
      try require(region.start >= 0 && length >= 0, "it lends \(length) bytes from \(region.start) on")
      try require(start + length <= fixture.length, "it lends bytes up to \(start + length) of \(fixture.length)")
      for (from, count) in [(0, min(length, 5000)), (max(0, length - 5000), min(length, 5000))] {
        var lent = [UInt8](repeating: 0, count: Int(count))
        let done = pread(region.descriptor, &lent, lent.count, off_t(region.offset + from))
        try require(done == lent.count, "of \(count) bytes that are lent at \(from) the file has \(done)")
        try require(lent == fixture.expected(start + from, lent.count), "what is lent at \(start + from) differs")
      }
      // The reader must still be readable afterwards.
      try exam.compare(reader, from: offset, to: min(fixture.length, offset + 500_000))
      try reader.finish()
    }
  }

  /// The whole range, or for sources longer than `limit` the start and, with random access, the end.
  private static func parts(of fixture: SourceFixture, within limit: Int64) -> [Range<Int64>] {
    if fixture.length <= limit { return [0..<fixture.length] }
    let isRandom = fixture.access == .random
    return [0..<limit] + (isRandom ? [fixture.length - limit..<fixture.length] : [])
  }

  private static func opensAnywhere(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    let length = fixture.length
    try requireThrows(.outOfRange, "open past the end") { _ = try exam.open(at: length + 1) }
    try requireThrows(.outOfRange, "open far past the end") { _ = try exam.open(at: .max) }
    for offset in Set(exam.isRandom ? [0, 1, length / 2, length - 1, length] : [0]).sorted()
    where 0...length ~= offset {
      try exam.compare(try exam.open(at: offset), from: offset, to: min(length, offset + 100_000))
    }
  }

  private static func opensAtEveryOffset(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    guard exam.isRandom else { return try goesOnInSequence(fixture) }
    // For a long source, only the offsets near its end.
    for offset in max(0, fixture.length - 300)...fixture.length {
      let reader = try exam.open(at: offset)
      try exam.compare(reader, from: offset, to: fixture.length, upTo: 512)
      try exam.expectEnd(reader)
    }
  }

  private static func endsForGood(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    let reader = try readToEnd(exam)
    for _ in 0..<4 { try exam.expectEnd(reader) }
  }

  private static func finishes(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    let reader = try readToEnd(exam)
    try reader.finish()
    try exam.expectEnd(reader)
    try reader.finish()
  }

  /// A reader at the end. For a long source with random access it has read only the last megabyte.
  private static func readToEnd(_ exam: Examination) throws -> any BlobReader {
    let start = exam.isRandom ? max(0, exam.fixture.length - 1 << 20) : 0
    let reader = try exam.open(at: start)
    try exam.compare(reader, from: start, to: exam.fixture.length)
    return reader
  }

  private static func readersAreIndependent(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    let first = try exam.open(at: 0)
    guard exam.isRandom else {
      return try requireThrows(.unsupported, "open a second reader") { _ = try exam.open(at: 0) }
    }
    let middle = fixture.length / 2
    let second = try exam.open(at: middle)
    var read: Int64 = 0
    while read < min(fixture.length - middle, 50_000) {
      let next = min(read + 997, fixture.length - middle)
      try exam.compare(first, from: read, to: next)
      try exam.compare(second, from: middle + read, to: middle + next)
      read = next
    }
  }

  private static func goesOnInSequence(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    let end = min(fixture.length, 300)
    for offset in 0..<end {
      try exam.compare(try exam.open(at: offset), from: offset, to: offset + 1)
    }
    if exam.isRandom || end == 0 { return }
    if fixture.goesBack {
      try exam.compare(try exam.open(at: 0), from: 0, to: end)
    } else {
      try requireThrows(.outOfRange, "open at bytes that are gone") { _ = try exam.open(at: 0) }
    }
  }

  private static func slicesExactly(_ fixture: SourceFixture) throws {
    let length = fixture.length
    let middle = length / 2
    var ranges: [(start: Int64, length: Int64?)] = [(0, 0), (0, nil), (0, length), (0, min(1, length))]
    if fixture.access == .random {
      ranges += [(middle, 0), (length, 0), (length, nil), (middle, nil), (middle, length - middle)]
      if length > 0 { ranges += [(length - 1, 1), (length - 1, nil), (0, length - 1)] }
    }
    for range in ranges where range.length ?? (length - range.start) <= 4 << 20 {
      let exam = try Examination(fixture)
      let reader = try BlobSlice(exam.source, start: range.start, length: range.length).open(exam.cancel)
      let end = range.start + (range.length ?? length - range.start)
      try exam.compare(reader, from: range.start, to: end)
      try exam.expectEnd(reader)
      try exam.expectEnd(reader)
    }
    guard length <= 4 << 20 else { return }
    try requireThrows(.truncated, "a slice of one byte too many") {
      let exam = try Examination(fixture)
      let reader = try BlobSlice(exam.source, length: length + 1).open(exam.cancel)
      try exam.compare(reader, from: 0, to: length)
      try exam.expectEnd(reader)
    }
  }

  private static func refusesOtherVersion(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    try requireThrows(.changed, "a slice of a version that never was") {
      _ = try BlobSlice(exam.source, validator: Validator(version: "never was")).open(exam.cancel)
    }
    if let validator = try exam.source.info(exam.cancel).validator {
      _ = try BlobSlice(exam.source, validator: validator).open(exam.cancel)
    }
  }

  private static func cancelsBeforehand(_ fixture: SourceFixture) throws {
    let exam = try Examination(fixture)
    exam.cancel.cancel()
    try requireThrows(.cancelled, "info") { _ = try exam.source.info(exam.cancel) }
    try requireThrows(.cancelled, "open") { _ = try exam.open(at: 0) }
    // Other operations are not affected.
    _ = try exam.source.open(at: 0, Cancellation())
  }

  private static func cancelsWhileWaiting(_ fixture: SourceFixture) throws {
    guard let stalled = fixture.stalled else { return }
    let source = try stalled()
    let cancel = Cancellation()
    let outcome = Monitor<BlobError.Code??>(nil)
    SystemThread.start("stalled") {
      let code = stop(source, cancel)
      outcome.update { $0 = .some(code) }
    }
    let early = outcome.wait(atMost: .milliseconds(50)) { $0 }
    try require(early == nil, "it was meant to wait, and ended: \(early as Any)")
    cancel.cancel()
    let code = outcome.wait(atMost: .seconds(30)) { $0 }
    try require(code == .some(.cancelled), "cancelled, it ended with \(code as Any)")
  }

  /// Reads until an error is thrown, and returns its code; nil if the source ends.
  private static func stop(_ source: any BlobSource, _ cancel: Cancellation) -> BlobError.Code? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    defer { buffer.deallocate() }
    do throws(BlobError) {
      let reader = try source.open(at: 0, cancel)
      while try reader.read(into: buffer) > 0 {}
      return nil
    } catch {
      return error.code
    }
  }
}
