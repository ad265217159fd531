import BlobStreams
import Blobs
import Foundation

/// One requirement of `BlobInputStream`, checked for any source. A new source joins with its `SourceFixture`:
///
/// ```swift
/// @Test(arguments: SourceFixture.all, StreamCheck.all)
/// func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
/// ```
public struct StreamCheck: Sendable, CustomStringConvertible {
  public let description: String
  private let modes: [StreamMode]
  private let body: @Sendable (StreamCheckContext) throws -> Void

  init(
    _ description: String, in modes: [StreamMode] = [.synchronous, .asynchronous],
    _ body: @escaping @Sendable (StreamCheckContext) throws -> Void
  ) {
    self.description = description
    self.modes = modes
    self.body = body
  }

  /// Runs the check in each of its modes. Throws a `CheckFailure`. Runs on threads that may block and have their own
  /// run loop.
  public func run(_ fixture: SourceFixture) async throws {
    for mode in modes {
      try await Self.threads.run { () throws in
        do {
          try autoreleased { try body(StreamCheckContext(fixture, mode)) }
        } catch {
          throw CheckFailure("\(fixture), \(mode): \(self): \(error)")
        }
      }
    }
  }

  // Few threads, because each has a run loop; but several, because a check may wait for another thread. They end when
  // idle: the address sanitizer reports Foundation's per-thread objects as leaks if the thread exists when the process
  // ends.
  private static let threads = BlockingPool("stream-checks", threads: 8, patience: .seconds(1))
}

/// How a stream under test reads its source.
public enum StreamMode: Sendable {
  /// `read` waits for bytes.
  case synchronous
  /// `read` never waits; events announce bytes.
  case asynchronous
}

/// The context of a running check, with the functions that checks use. Confined to its thread.
final class StreamCheckContext {
  let fixture: SourceFixture
  let mode: StreamMode
  /// The run loop in which the streams of this check are scheduled by default.
  let loop = RunLoop.current
  private var logs: [EventLog] = []

  init(_ fixture: SourceFixture, _ mode: StreamMode) {
    self.fixture = fixture
    self.mode = mode
  }

  var isAsynchronous: Bool { mode == .asynchronous }
  var isEmpty: Bool { fixture.length == 0 }

  /// A new stream over a new source. `wrap` may add faults to the source.
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

  /// Like `makeStream`, but scheduled in `loop` and opened, or opening.
  func openStream(
    block: Int = 128 << 10, _ wrap: (any BlobSource) -> any BlobSource = { $0 }
  ) throws -> (stream: BlobInputStream, events: EventLog) {
    let made = try makeStream(block: block, wrap)
    made.stream.schedule(in: loop, forMode: .default)
    made.stream.open()
    return made
  }

  /// Runs the loop until `condition` is true.
  func run(_ what: String, in mode: RunLoop.Mode = .default, until condition: () -> Bool) throws {
    let limit = Date(timeIntervalSinceNow: 20)
    while !condition() {
      try require(Date() < limit, "\(what) did not come")
      loop.turn(in: mode, atMost: 0.002)
    }
  }

  /// Runs the loop as long as events arrive, and a little longer, because in asynchronous mode events come from other
  /// threads.
  func runDry(in mode: RunLoop.Mode = .default) {
    var count = -1
    while count != received {
      count = received
      for _ in 0..<3 { loop.turn(in: mode, atMost: isAsynchronous ? 0.003 : 0) }
    }
  }

  private var received: Int { logs.reduce(0) { $0 + $1.entries.count } }

  /// Waits, without running the loop, until the stream has bytes or does not change by itself any more.
  func awaitSettled(_ stream: BlobInputStream) throws {
    let limit = Date(timeIntervalSinceNow: 20)
    while isAsynchronous && !stream.hasBytesAvailable && !stream.isAtRest {
      try require(Date() < limit, "nothing comes")
      Thread.sleep(forTimeInterval: 0.001)
    }
  }

  /// Runs the loop until a read would return bytes, the end or an error.
  func awaitBytes(_ stream: BlobInputStream) throws {
    try run("something to read") { stream.hasBytesAvailable || stream.isAtRest }
  }

  /// Reads once, as soon as something can be read.
  func read(_ stream: BlobInputStream, _ count: Int) throws -> [UInt8]? {
    try awaitBytes(stream)
    return stream.readOnce(count)
  }

  /// Reads from the current offset `start` up to `end`, or to the stream's end, and compares the bytes.
  func compare(_ stream: BlobInputStream, from start: Int64 = 0, to end: Int64, upTo size: Int = 64 << 10) throws {
    var offset = start
    while offset < end {
      guard let bytes = try read(stream, Int(min(Int64(size), end - offset))) else {
        throw CheckFailure("a read at byte \(offset) failed: \(stream.streamError as Any)")
      }
      try require(!bytes.isEmpty, "the end came at byte \(offset), before \(end)")
      try require(bytes == fixture.expected(offset, bytes.count), "other bytes than those from \(offset) on")
      offset += Int64(bytes.count)
      let found = stream.property(forKey: .fileCurrentOffsetKey) as? Int64
      try require(found == offset, "the offset is \(found as Any) after byte \(offset)")
    }
  }

  /// Requires that `stream` has an error, and that the source's error is the underlying error.
  func requireError(_ stream: BlobInputStream, _ code: BlobError.Code, _ what: String) throws {
    let error = stream.streamError
    try require(error.map { $0 as NSError }?.domain == BlobError.streamErrorDomain, "\(what): \(error as Any)")
    let underneath = BlobError(underlying: error)?.code
    try require(underneath == code, "\(what): .\(underneath as Any) underneath instead of .\(code)")
  }
}

extension BlobInputStream {
  /// Reads once; returns nil for -1. Traps if the stream writes more than `count` bytes.
  func readOnce(_ count: Int) -> [UInt8]? {
    let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count + 16)
    defer { memory.deallocate() }
    memory.initialize(repeating: 0xA5)
    let read = read(memory.baseAddress!, maxLength: count)
    precondition(read <= count && memory[count...].allSatisfy { $0 == 0xA5 }, "a read wrote past its end")
    return read < 0 ? nil : Array(memory.prefix(read))
  }

  /// The stream will not change its status by itself any more.
  var isAtRest: Bool { [.atEnd, .closed, .error, .notOpen].contains(streamStatus) }
}

/// Runs `body` in an autorelease pool on platforms with Objective-C.
func autoreleased<Result>(_ body: () throws -> Result) rethrows -> Result {
  #if canImport(ObjectiveC)
    return try autoreleasepool(invoking: body)
  #else
    return try body()
  #endif
}
