import BlobTesting
import TestSupport
import Blobs
import Platform
import Testing

struct SpoolTests {
  /// A transport that has returned a response may not have released its reader yet.
  @Test func aPatientOneWaitsForTheOtherReader() async throws {
    var hasty = Spool(PatternSource(length: 100), memory: 100)
    hasty.patience = .seconds(30)
    let spool = hasty
    let (opened, signal) = AsyncStream<Void>.makeStream()
    let held = Monitor<(any BlobReader)?>(try spool.open(at: 0, Cancellation()))
    let pool = BlockingPool("test", threads: 1)
    async let second: Int = pool.run {
      signal.finish()
      let reader = try spool.open(at: 0, Cancellation())
      var byte: UInt8 = 0
      return try withUnsafeMutableBytes(of: &byte) { try reader.read(into: $0) }
    }
    for await _ in opened {}
    held.update { $0 = nil }
    #expect(try await second == 1)

    let stuck = try spool.open(at: 0, Cancellation())
    let cancel = Cancellation()
    cancel.cancel()
    #expect(throws: BlobError.self) { try spool.open(at: 0, cancel) }
    hasty.patience = .milliseconds(1)
    let impatient = hasty
    let error = #expect(throws: BlobError.self) { try impatient.open(at: 0, Cancellation()) }
    #expect(error?.code == .unsupported)
    withExtendedLifetime(stuck) {}
  }

  private let pattern = PatternSource(length: 20_000, seed: 6, access: .sequential)

  @Test func bytesSinceTheLastReleaseAreReadAgain() throws {
    let spool = Spool(pipe(pattern), memory: 5000)
    #expect(try readNext(try spool.open(at: 0, Cancellation()), 2000) == pattern.bytes(count: 2000))
    for offset in [0, 1, 1999, 2000] as [Int64] {
      let reader = try spool.open(at: offset, Cancellation())
      #expect(try readNext(reader, 500) == pattern.bytes(at: offset, count: 500))
    }
    #expect(spool.held == 0...2500)
    spool.release(upTo: 1200)
    #expect(spool.held == 1200...2500)
    #expect(failure { () throws(BlobError) in try spool.open(at: 1199, Cancellation()) }?.code == .outOfRange)
    #expect(try spool.readAll(at: 1200) == pattern.bytes(at: 1200, count: 18_800))
  }

  @Test func oldestBytesMakeWayWhereThereIsNoFolder() throws {
    let spool = Spool(pipe(pattern), memory: 5000)
    #expect(try spool.readAll(upTo: 777) == pattern.bytes(count: 20_000))
    #expect(spool.held == 15_000...20_000)
    #expect(try spool.readAll(at: 15_000, upTo: 313) == pattern.bytes(at: 15_000, count: 5000))
  }

  @Test func chunkLargerThanMemoryIsHandedOverInPieces() throws {
    let spool = Spool(pipe(pattern), memory: 1)
    #expect(try spool.readAll(upTo: 4096) == pattern.bytes(count: 20_000))
    #expect(spool.held == 19_999...20_000)
  }

  @Test(arguments: [1, 100, 4999, 5000, 5001, 1 << 20])
  func folderTakesWhatDoesNotFitIntoMemory(_ memory: Int) throws {
    let folder = try ScratchFolder()
    let spool = Spool(pipe(pattern), memory: memory, spillingInto: folder.path)
    #expect(try spool.readAll(upTo: 777) == pattern.bytes(count: 20_000))
    for offset in stride(from: 0, through: 20_000, by: 1999) as StrideThrough<Int64> {
      #expect(try spool.readAll(at: offset, upTo: 701) == pattern.bytes(at: offset, count: 20_000 - Int(offset)))
    }
    spool.release(upTo: 7000)
    #expect(spool.held == 7000...20_000)
    #expect(try spool.readAll(at: 7000) == pattern.bytes(at: 7000, count: 13_000))
    #expect(folder.names(in: "") == [])
  }

  @Test func randomReadsReleasesAndReturns() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("randomReadsReleasesAndReturns: seed \(seed)")
    var random = Numbers(seed)
    let folder = try ScratchFolder()
    for round in 0..<60 {
      let spills = Bool.random(using: &random)
      let spool = Spool(
        pipe(pattern), memory: .random(in: 1...6000, using: &random), spillingInto: spills ? folder.path : nil)
      while spool.held.upperBound < pattern.length {
        let offset = Int64.random(in: spool.held, using: &random)
        let count = Int.random(in: 1...3000, using: &random)
        let found = try readNext(try spool.open(at: offset, Cancellation()), count)
        let expected = pattern.bytes(at: offset, count: min(count, Int(pattern.length - offset)))
        try #require(found == expected, "seed \(seed), round \(round), \(count) from \(offset)")
        if Int.random(in: 0..<4, using: &random) == 0 { spool.release(upTo: .random(in: spool.held, using: &random)) }
      }
    }
  }

  @Test func releaseFromAnotherThreadIsSafe() throws {
    let folder = try ScratchFolder()
    let long = PatternSource(length: 3_000_000, seed: 7, access: .sequential)
    let spool = Spool(pipe(long, capacity: 10_000), memory: 20_000, spillingInto: folder.path)
    let reader = Background { failure { () throws(BlobError) in try compareAll(spool, long) }?.message ?? "all there" }
    while spool.held.upperBound < long.length, reader.value(within: .zero) == nil {
      spool.release(upTo: spool.held.upperBound - 5000)
    }
    #expect(reader.value() == "all there")
  }

  @Test func releasedFileGivesItsSpaceBack() throws {
    let folder = try ScratchFolder()
    let spool = Spool(pipe(PatternSource(length: 4 << 20)), memory: 1 << 20, spillingInto: folder.path)
    _ = try spool.readAll()
    let full = try blocksOfNamelessFile(in: folder.path)
    spool.release(upTo: 2 << 20)
    #expect(try blocksOfNamelessFile(in: folder.path) < full)
    spool.release(upTo: 4 << 20)
    #expect(throws: CheckFailure.self, "the file is gone") { try blocksOfNamelessFile(in: folder.path) }
  }

  @Test func droppedSpoolLeavesNoFileOpen() throws {
    let folder = try ScratchFolder()
    do {
      let spool = Spool(pipe(pattern), memory: 100, spillingInto: folder.path)
      let reader = try spool.open(at: 0, Cancellation())
      _ = try readNext(reader, 5000)
      _ = try blocksOfNamelessFile(in: folder.path)
    }
    #expect(throws: CheckFailure.self) { try blocksOfNamelessFile(in: folder.path) }
  }

  @Test func killLeavesNothingBehind() async throws {
    let folder = try ScratchFolder()
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = folder.path.description as String] in
      let spool = Spool(pipe(PatternSource(length: 20_000)), memory: 100, spillingInto: BytePath(path))
      let reader = try spool.open(at: 0, Cancellation())
      _ = try readNext(reader, 10_000)
      kill(getpid(), SIGKILL)
    }
    #expect(folder.names(in: "") == [])
  }

  @Test func fileWithANameIsUnlinkedAndSweptAway() throws {
    let folder = try ScratchFolder()
    let descriptor = try SpoolFile.unlinked(in: folder.path)
    #expect(descriptor >= 0 && folder.names(in: "") == [])
    close(descriptor)
    // The state after a kill between the two steps.
    let leftover: BytePath = ".fullbore-spool-0123456789abcdef"
    let others: [BytePath] = ["photo.jpg", ".fullbore-spool-0123", ".fullbore-spool-0123456789abcdef0"]
    for name in [leftover] + others { try make(folder.path.appending(name)) }
    let link: BytePath = ".fullbore-spool-1111111111111111"
    try check(symlink(folder.path.appending("photo.jpg").description, folder.path.appending(link).description) == 0)
    let spool = Spool(pipe(pattern), spillingInto: folder.path)
    #expect(try spool.readAll() == pattern.bytes(count: 20_000))
    #expect(folder.names(in: "").sorted() == (others + [link]).sorted())
  }

  @Test func missingFolderIsSaidBeforeAnythingIsRead() throws {
    let source = FaultySource(pattern)
    let spool = Spool(source, spillingInto: "/nonexistent/folder")
    #expect(failure { () throws(BlobError) in try spool.open(at: 0, Cancellation()) }?.code == .notFound)
    #expect(source.openings == 0)
  }

  @Test func fullDiskLosesNothing() throws {
    // /dev/full is no folder; a limit on the size of files has the same effect.
    let folder = try ScratchFolder()
    let spool = Spool(pipe(pattern), memory: 1000, spillingInto: folder.path)
    signal(SIGXFSZ, SIG_IGN)
    var before = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    var tight = rlimit(rlim_cur: 4096, rlim_max: before.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &tight)
    let error = failure { () throws(BlobError) in try spool.readAll() }
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &before)
    #expect(error?.code == .io && error?.errno == EFBIG)
    #expect(try spool.readAll() == pattern.bytes(count: 20_000), "once there is room, it goes on")
  }

  @Test func anotherVersionIsNotMixedIn() throws {
    let source = FaultySource(
      pattern, .fail(at: 100, BlobError(.io, ""), times: 1),
      .replaced(by: PatternSource(length: 20_000, seed: 7), from: 2))
    let spool = Spool(source)
    #expect(failure { () throws(BlobError) in try spool.readAll() }?.code == .io)
    #expect(failure { () throws(BlobError) in try spool.open(at: 0, Cancellation()) }?.code == .changed)
  }

  @Test func badOffsetsAreOutOfRange() throws {
    let spool = Spool(pipe(pattern))
    for offset in [-1, 1, .min, .max] as [Int64] {
      #expect(failure { () throws(BlobError) in try spool.open(at: offset, Cancellation()) }?.code == .outOfRange)
    }
    spool.release(upTo: .max)
    spool.release(upTo: .min)
    #expect(spool.held == 0...0)
    #expect(try spool.readAll() == pattern.bytes(count: 20_000))
  }

  @Test func releasedUnderAReaderIsAnError() throws {
    let spool = Spool(pipe(pattern))
    _ = try readNext(try spool.open(at: 0, Cancellation()), 1000)
    let reader = try spool.open(at: 0, Cancellation())
    spool.release(upTo: 500)
    #expect(failure { () throws(BlobError) in try readNext(reader, 1) }?.code == .outOfRange)
  }
}

/// Reads all of `source` and compares it with the pattern.
private func compareAll(_ source: any BlobSource, _ pattern: PatternSource) throws(BlobError) {
  let reader = try source.open(at: 0, Cancellation())
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 3000, alignment: 16)
  defer { buffer.deallocate() }
  var offset: Int64 = 0
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { break }
    if let wrong = pattern.verify(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), at: offset) {
      throw BlobError(.io, "byte \(wrong) is wrong")
    }
    offset += Int64(count)
  }
  if offset != pattern.length { throw BlobError(.truncated, "it ended at byte \(offset)") }
}

private func make(_ path: BytePath) throws {
  let descriptor = path.withCString { creat($0, 0o600) }
  try check(descriptor >= 0)
  close(descriptor)
}

/// Disk blocks of the only unnamed file in `folder` that this process has open.
private func blocksOfNamelessFile(in folder: BytePath) throws -> Int {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  for descriptor in 3..<Int32(clamping: min(limit.rlim_cur, 1 << 17)) {
    var target = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/fd/\(descriptor)", &target, target.count - 1)
    guard count > 0, BytePath(cString: target).description.hasPrefix(folder.description + "/") else { continue }
    var status = stat()
    if fstat(descriptor, &status) == 0, status.st_nlink == 0 { return Int(status.st_blocks) }
  }
  throw CheckFailure("no file is open in \(folder)")
}
