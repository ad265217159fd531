import BlobCrypto
import BlobTesting
import Blobs
import Testing

struct SourceTests {
  @Test(arguments: SourceFixture.all + SourceFixture.lenders, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }
}

extension SourceFixture {
  static let all = [0, 1, 5000, 300_000].flatMap { sources(of: $0) } + wrappers + [terabytes, beyondFourGiB]
  /// Sources with a file region in their middle. Their first read is short, which the checks of streams do not expect.
  static let lenders = [5000, 300_000].flatMap { lenders(of: $0) }

  private static func sources(of length: Int) -> [SourceFixture] {
    let pattern = PatternSource(length: Int64(length), seed: 1)
    let bytes = pattern.bytes(count: length)
    return [
      SourceFixture("a file of \(length)", like: pattern, lendsFile: true) {
        FileSource(try TemporaryFile.shared("\(length)", bytes))
      },
      SourceFixture("a held file of \(length)", like: pattern, lendsFile: true) {
        OpenFileSource(try TemporaryFile.shared("\(length)", bytes))
      },
      SourceFixture("\(length) bytes in memory", like: bytes) { DataSource(bytes) },
      SourceFixture("a pattern of \(length)", like: bytes) { pattern },
      SourceFixture("a pattern of \(length), length unknown", like: bytes, knowsLength: false) {
        PatternSource(length: Int64(length), seed: 1, knowsLength: false)
      },
      SourceFixture(
        "a pipe of \(length)", like: pattern, access: .sequential, knowsLength: false, hasValidator: false,
        stalled: { stalledPipe() }
      ) { pipe(pattern) },
      SourceFixture(
        "a pipe that promised \(length)", like: pattern, access: .sequential, hasValidator: false,
        stalled: { stalledPipe() }
      ) { pipe(pattern, length: pattern.length) },
      SourceFixture(
        "a descriptor of \(length)", like: pattern, access: .sequential, knowsLength: false, hasValidator: false,
        stalled: { try PipedDescriptor(nil) }
      ) { try PipedDescriptor(pattern) },
      SourceFixture(
        "an asynchronous sequence of \(length)", like: pattern, access: .sequential, knowsLength: false,
        hasValidator: false, stalled: { AsyncSequenceSource(AsyncStream<[UInt8]>.makeStream().stream) }
      ) { AsyncSequenceSource(pattern.buffers(size: 3333), capacity: 1000) },
    ]
  }

  private static let wrappers = [0, 1, 5000, 300_000].flatMap { length -> [SourceFixture] in
    let limiter = RateLimiter(bytesPerSecond: 10_000_000_000)
    let slow = PatternSource(length: Int64(length), seed: 2, preferredRead: 4096)
    return [
      wrapped("reopening", slow) { ReopeningSource($0) },
      wrapped("buffered", slow) { BufferedSource($0, block: 1000) },
      wrapped("hashing", slow) { HashingSource($0, .md5) },
      wrapped("counting", slow) { CountingSource($0) },
      wrapped("throttled", slow) { ThrottledSource($0, limiter) },
      wrapped("in a row", slow) { ConcatenatedSource([DataSource([]), $0, DataSource([])]) },
      wrapped("counting words", slow) { CountingSource($0, occurrencesOf: [1, 2]) },
      wrapped("telling its progress", slow) { ProgressSource($0, every: .zero) { _ in } },
      wrapped("sliced", slow) { SlicedSource($0) },
      wrapped("read ahead", slow) { ReadAheadSource($0, capacity: 7000) },
      wrapped("read ahead if it is slow", slow) { ReadAheadSource($0, capacity: 7000, ifSlowerThan: 1_000_000) },
      wrapped("there and back", slow) { try roundTrip($0) },
      encrypted(slow),
      wrapped("sealed and opened", slow) { UnsealedSource(try sealed($0), with: [sealKey.identity]) },
      sealed(slow, knowsLength: true),
      sealed(PatternSource(length: Int64(length), seed: 2, knowsLength: false), knowsLength: false),
      sealedPipe(slow),
      wrapped("reopening, with losses", slow) {
        ReopeningSource(FaultySource($0, .invalidate(at: slow.length / 3, times: 2), .shortReads(4000)))
      },
      wrapped("all at once", slow) {
        ThrottledSource(
          CountingSource(HashingSource(BufferedSource(ReopeningSource(ConcatenatedSource([$0]))), .sha1)), limiter)
      },
      SourceFixture("\(length) in the middle of more", like: slow) {
        SlicedSource(ConcatenatedSource([DataSource([1, 2]), slow, DataSource([3])]), start: 2, length: slow.length)
      },
      SourceFixture("a file of \(length), sliced", like: slow, lendsFile: true) {
        SlicedSource(
          FileSource(try TemporaryFile.shared("sliced \(length)", [9] + slow.bytes(count: length))), start: 1)
      },
      SourceFixture("\(length) in three pieces", like: slow) { ConcatenatedSource(pieces(slow)) },
      SourceFixture("\(length) in three pieces of unknown length", like: slow, knowsLength: false) {
        ConcatenatedSource(pieces(slow, knowsLength: false))
      },
      SourceFixture("a file of \(length), buffered and reopening", like: slow, lendsFile: true) {
        BufferedSource(
          ReopeningSource(FileSource(try TemporaryFile.shared("slow \(length)", slow.bytes(count: length)))))
      },
      wrappedPipe("buffered", slow) { BufferedSource($0) },
      wrappedPipe("hashing", slow) { HashingSource($0, .md5) },
      wrappedPipe("reopening", slow) { ReopeningSource($0) },
      wrappedPipe("in a row", slow) { ConcatenatedSource([$0]) },
      wrappedPipe("telling its progress", slow) { ProgressSource($0) { _ in } },
      wrappedPipe("sliced", slow) { SlicedSource($0) },
      wrappedPipe("read ahead", slow) { ReadAheadSource($0) },
      spooled("in memory", slow) { Spool($0, memory: 1000) },
      spooled("to a file", slow) { Spool($0, memory: 1000, spillingInto: TemporaryFile.folder) },
    ]
  }

  /// Joined sources whose longest piece is a file.
  private static func lenders(of length: Int) -> [SourceFixture] {
    let pattern = PatternSource(length: Int64(length), seed: 4)
    @Sendable func pieces(_ cuts: [Int]) throws -> ConcatenatedSource {
      let bytes = pattern.bytes(count: length)
      let ends = [0] + cuts + [length]
      return ConcatenatedSource(
        try zip(ends, ends.dropFirst()).map { start, end -> any BlobSource in
          let piece = Array(bytes[start..<end])
          return end - start < 100 ? DataSource(piece) : FileSource(try TemporaryFile.lasting(piece))
        })
    }
    return [
      SourceFixture("a file of \(length) between others", like: pattern, lendsFile: true) {
        try pieces([10, 20, length - 5])
      },
      SourceFixture("the longer of two files of \(length)", like: pattern, lendsFile: true) {
        try pieces([10, length / 3, length - 5])
      },
      SourceFixture("a file of \(length) between others, in blocks", like: pattern, lendsFile: true) {
        BufferedSource(ReopeningSource(try pieces([10, 20, length - 5])), block: 100)
      },
      SourceFixture("a file of \(length) between others, sliced", like: pattern, lendsFile: true) {
        let more = ConcatenatedSource([DataSource([1, 2]), try pieces([3]), DataSource([5])])
        return SlicedSource(more, start: 2, length: pattern.length)
      },
    ]
  }

  private static let terabytes: SourceFixture = {
    let pattern = PatternSource(length: 5 << 40, seed: 3)
    return SourceFixture("five terabytes", like: pattern) { ConcatenatedSource(pieces(pattern)) }
  }()

  private static let beyondFourGiB: SourceFixture = {
    let length: Int64 = 5 << 30
    var fixture = SourceFixture("a sparse file beyond 4 GiB", like: PatternSource(length: length), lendsFile: true) {
      FileSource(try TemporaryFile.shared("sparse", [], sparse: length))
    }
    fixture.expected = { _, count in [UInt8](repeating: 0, count: count) }
    return fixture
  }()

  private static func wrapped(
    _ name: String, _ pattern: PatternSource, _ wrap: @escaping @Sendable (any BlobSource) throws -> any BlobSource
  ) -> SourceFixture {
    SourceFixture(
      "\(pattern.length) \(name)", like: pattern,
      stalled: { try wrap(FaultySource(PatternSource(length: 10), .stall(at: 5))) }
    ) { try wrap(pattern) }
  }

  /// The expected bytes are encrypted in one call, from byte 0.
  private static func encrypted(_ pattern: PatternSource) -> SourceFixture {
    var fixture = wrapped("encrypted", pattern) { try encrypting($0) }
    fixture.expected = { offset, count in
      let whole = try! encrypting(pattern).readAll(upTo: 1 << 20)
      return Array(whole[Int(offset)..<Int(offset) + count])
    }
    return fixture
  }

  /// The expected bytes are sealed in one pass, from byte 0.
  private static func sealed(_ pattern: PatternSource, knowsLength: Bool) -> SourceFixture {
    let whole = try! sealed(pattern).readAll(upTo: 1 << 20)
    return SourceFixture(
      "\(pattern.length) sealed, length \(knowsLength ? "known" : "unknown")", like: whole, knowsLength: knowsLength,
      stalled: { try sealed(FaultySource(PatternSource(length: 10), .stall(at: 5))) }
    ) { try sealed(pattern) }
  }

  private static func sealedPipe(_ pattern: PatternSource) -> SourceFixture {
    let whole = try! sealed(pattern).readAll(upTo: 1 << 20)
    return SourceFixture(
      "a pipe of \(pattern.length) sealed", like: whole, access: .sequential, knowsLength: false, hasValidator: false,
      stalled: { try sealed(stalledPipe()) }
    ) { try sealed(pipe(pattern)) }
  }

  private static func sealed(_ source: any BlobSource) throws -> SealedSource { SealedSource(source, try sealKey.seal) }

  private static func wrappedPipe(
    _ name: String, _ pattern: PatternSource, _ wrap: @escaping @Sendable (any BlobSource) -> any BlobSource
  ) -> SourceFixture {
    SourceFixture(
      "a pipe of \(pattern.length) \(name)", like: pattern, access: .sequential, knowsLength: false,
      hasValidator: false, stalled: { wrap(stalledPipe()) }
    ) { wrap(pipe(pattern)) }
  }

  private static func spooled(
    _ name: String, _ pattern: PatternSource, _ wrap: @escaping @Sendable (any BlobSource) -> any BlobSource
  ) -> SourceFixture {
    var fixture = wrappedPipe("spooled \(name)", pattern, wrap)
    fixture.goesBack = true
    return fixture
  }

  /// The pattern, split at a third and at a half.
  private static func pieces(_ pattern: PatternSource, knowsLength: Bool = true) -> [any BlobSource] {
    let cuts = [0, pattern.length / 3, pattern.length / 2, pattern.length]
    return zip(cuts, cuts.dropFirst()).map { Piece(pattern, $0..<$1, knowsLength: knowsLength) }
  }
}

func encrypting(_ source: any BlobSource) throws -> EncryptingSource {
  EncryptingSource(source, key: try EncryptionKey([UInt8](repeating: 1, count: 32)), name: "a test")
}

/// Encrypts and then decrypts.
func roundTrip(_ source: any BlobSource) throws -> any BlobSource {
  let encrypted = try encrypting(source)
  let version = try encrypted.info().validator?.version ?? ""
  return DecryptingSource(encrypted, key: try EncryptionKey([UInt8](repeating: 1, count: 32)), version: version)
}

/// A range of a pattern as a source.
private struct Piece: BlobSource {
  let pattern: PatternSource
  let range: Range<Int64>
  let knowsLength: Bool
  var access: BlobAccess { .random }

  init(_ pattern: PatternSource, _ range: Range<Int64>, knowsLength: Bool) {
    self.pattern = pattern
    self.range = range
    self.knowsLength = knowsLength
  }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a piece")
    return BlobInfo(length: knowsLength ? length : nil, validator: Validator(version: "piece \(range)"))
  }

  var length: Int64 { range.upperBound - range.lowerBound }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard 0...length ~= offset else { throw BlobError(.outOfRange, "a piece has no byte \(offset)") }
    let slice = BlobSlice(pattern, start: range.lowerBound + offset, length: length - offset)
    return Reader(try slice.open(cancel), try info(cancel))
  }

  final class Reader: BlobReader {
    let reader: any BlobReader
    let info: BlobInfo
    init(_ reader: any BlobReader, _ info: BlobInfo) {
      self.reader = reader
      self.info = info
    }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}

/// A pipe into which a thread writes the pattern, in pieces of odd sizes.
func pipe(_ pattern: PatternSource, length: Int64? = nil, capacity: Int = 1000) -> PipeSource {
  let pipe = BlobPipe(capacity: capacity)
  let source = PipeSource(pipe, length: length)
  SystemThread.start("pipe-writer") {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 3333, alignment: 16)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < pattern.length {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: pattern.length - offset)))
      pattern.fill(piece, at: offset)
      do { try pipe.write(UnsafeRawBufferPointer(piece)) } catch { return }  // the check has read enough
      offset += Int64(piece.count)
    }
    pipe.finish()
  }
  return source
}

/// A pipe whose writer writes nothing as long as the source exists.
func stalledPipe() -> any BlobSource {
  struct Stalled: BlobSource {
    let pipe: BlobPipe
    let source: PipeSource
    var access: BlobAccess { source.access }
    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      try source.open(at: offset, cancel)
    }
  }
  let pipe = BlobPipe(capacity: 10)
  return Stalled(pipe: pipe, source: PipeSource(pipe))
}
