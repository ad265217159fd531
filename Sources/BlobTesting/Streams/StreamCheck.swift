import BlobStreams
import Blobs
import Foundation

/// One promise of `BlobInputStream`, held against any source. A new source joins with its `SourceFixture`:
///
/// ```swift
/// @Test(arguments: SourceFixture.all, StreamCheck.all)
/// func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
/// ```
public struct StreamCheck: Sendable, CustomStringConvertible {
  public let description: String
  private let modes: [StreamMode]
  private let body: @Sendable (StreamExam) throws -> Void

  init(
    _ description: String, in modes: [StreamMode] = [.synchronous, .asynchronous],
    _ body: @escaping @Sendable (StreamExam) throws -> Void
  ) {
    self.description = description
    self.modes = modes
    self.body = body
  }

  /// In every mode that it is about. Throws a `CheckFailure`. Runs on threads that may block, with a run loop of their own.
  public func run(_ fixture: SourceFixture) async throws {
    for mode in modes {
      try await Self.threads.run { () throws in
        do {
          try autoreleased { try body(StreamExam(fixture, mode)) }
        } catch {
          throw CheckFailure("\(fixture), \(mode): \(self): \(error)")
        }
      }
    }
  }

  // Few, since they keep a run loop each; and several, since a check may wait for another thread. They end: the address
  // sanitizer takes for leaked what Foundation keeps for a thread that is there when the process ends.
  private static let threads = BlockingPool("stream-checks", threads: 8, patience: .seconds(1))
}

public enum StreamMode: Sendable { case synchronous, asynchronous }

/// A check in the middle: what the functions of `StreamCheck` are written with. It stays on its thread.
final class StreamExam {
  let fixture: SourceFixture
  let mode: StreamMode
  /// What every stream of this check is scheduled in and runs, unless it says otherwise.
  let loop = RunLoop.current
  private var logs: [EventLog] = []

  init(_ fixture: SourceFixture, _ mode: StreamMode) {
    self.fixture = fixture
    self.mode = mode
  }

  var isAsynchronous: Bool { mode == .asynchronous }
  var isEmpty: Bool { fixture.length == 0 }

  /// A stream of its own over a source of its own, which `wrap` may make worse.
  func makeStream(
    block: Int = 128 << 10, _ wrap: (any BlobSource) -> any BlobSource = { $0 }
  ) throws -> (stream: BlobInputStream, events: EventLog) {
    let stream = BlobInputStream(wrap(try fixture.make()), asynchronous: isAsynchronous, block: block)
    let events = makeLog()
    stream.delegate = events
    return (stream, events)
  }

  func makeLog() -> EventLog {
    logs.append(EventLog())
    return logs.last!
  }

  /// As `makeStream`, scheduled here, and open or on its way to it.
  func openStream(
    block: Int = 128 << 10, _ wrap: (any BlobSource) -> any BlobSource = { $0 }
  ) throws -> (stream: BlobInputStream, events: EventLog) {
    let made = try makeStream(block: block, wrap)
    made.stream.schedule(in: loop, forMode: .default)
    made.stream.open()
    return made
  }

  /// Runs the loop until `condition` holds.
  func run(_ what: String, in mode: RunLoop.Mode = .default, until condition: () -> Bool) throws {
    let limit = Date(timeIntervalSinceNow: 20)
    while !condition() {
      try require(Date() < limit, "\(what) did not come")
      loop.turn(in: mode, atMost: 0.002)
    }
  }

  /// Runs the loop for as long as something is told, and a moment more: where threads fetch, it may come late.
  func runDry(in mode: RunLoop.Mode = .default) {
    var count = -1
    while count != told {
      count = told
      for _ in 0..<3 { loop.turn(in: mode, atMost: isAsynchronous ? 0.003 : 0) }
    }
  }

  private var told: Int { logs.reduce(0) { $0 + $1.entries.count } }

  /// Waits, without running the loop, until what the stream does by itself is done.
  func awaitSettled(_ stream: BlobInputStream) throws {
    let limit = Date(timeIntervalSinceNow: 20)
    while isAsynchronous && !stream.hasBytesAvailable && !stream.isAtRest {
      try require(Date() < limit, "nothing comes")
      Thread.sleep(forTimeInterval: 0.001)
    }
  }

  /// Runs the loop until a read would find something: bytes, the end, an error.
  func awaitBytes(_ stream: BlobInputStream) throws {
    try run("something to read") { stream.hasBytesAvailable || stream.isAtRest }
  }

  /// One read, at once or when there is something.
  func read(_ stream: BlobInputStream, _ count: Int) throws -> [UInt8]? {
    try awaitBytes(stream)
    return stream.readOnce(count)
  }

  /// Reads up to `end`, or the stream's own end, and compares; the next byte is the one at `start`.
  func compare(_ stream: BlobInputStream, from start: Int64 = 0, to end: Int64, upTo size: Int = 64 << 10) throws {
    var offset = start
    while offset < end {
      guard let bytes = try read(stream, Int(min(Int64(size), end - offset))) else {
        throw CheckFailure("a read at byte \(offset) failed: \(stream.streamError as Any)")
      }
      try require(!bytes.isEmpty, "the end came at byte \(offset), before \(end)")
      try require(bytes == fixture.expected(offset, bytes.count), "other bytes than those from \(offset) on")
      offset += Int64(bytes.count)
      let told = stream.property(forKey: .fileCurrentOffsetKey) as? Int64
      try require(told == offset, "the offset is \(told as Any) after byte \(offset)")
    }
  }

  /// `stream` must be in error, and have the source's own underneath.
  func requireError(_ stream: BlobInputStream, _ code: BlobError.Code, _ what: String) throws {
    let error = stream.streamError
    try require(error.map { $0 as NSError }?.domain == BlobError.streamErrorDomain, "\(what): \(error as Any)")
    let underneath = BlobError(underlying: error)?.code
    try require(underneath == code, "\(what): .\(underneath as Any) underneath instead of .\(code)")
  }
}

extension BlobInputStream {
  /// nil for -1. Nothing is written past `count` bytes.
  func readOnce(_ count: Int) -> [UInt8]? {
    let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count + 16)
    defer { memory.deallocate() }
    memory.initialize(repeating: 0xA5)
    let read = read(memory.baseAddress!, maxLength: count)
    precondition(read <= count && memory[count...].allSatisfy { $0 == 0xA5 }, "a read wrote past its end")
    return read < 0 ? nil : Array(memory.prefix(read))
  }

  /// Nothing will change by itself any more.
  var isAtRest: Bool { [.atEnd, .closed, .error, .notOpen].contains(streamStatus) }
}

/// Temporary objects of Foundation go at the end of `body`, where there is such a thing.
func autoreleased<Result>(_ body: () throws -> Result) rethrows -> Result {
  #if canImport(ObjectiveC)
    return try autoreleasepool(invoking: body)
  #else
    return try body()
  #endif
}
