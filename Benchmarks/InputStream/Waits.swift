import BlobStreams
import BlobTesting
import Blobs
import Foundation

/// What an asynchronous stream makes its users wait for.
enum Waits {
  /// Every method, again and again while the source is being opened.
  static func methodsWhileOpening(for time: Duration) -> Times {
    var times: [Duration] = []
    let clock = ContinuousClock()
    let stream = BlobInputStream(SlowSource(time), asynchronous: true)
    let thread = LoopThread()
    var (byte, bytes, count) = (UInt8(0), nil as UnsafeMutablePointer<UInt8>?, 0)
    func call(_ method: () -> Void) { times.append(clock.measure(method)) }
    call { stream.schedule(in: thread.loop, forMode: .default) }
    call { stream.open() }
    let deadline = clock.now + time - .milliseconds(500)
    while clock.now < deadline {
      Thread.sleep(forTimeInterval: 0.0001)
      call { _ = stream.read(&byte, maxLength: 1) }
      call { _ = stream.hasBytesAvailable }
      call { _ = stream.streamStatus }
      call { _ = stream.streamError }
      call { _ = stream.getBuffer(&bytes, length: &count) }
      call { _ = stream.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey) }
      call { _ = stream.property(forKey: .fileCurrentOffsetKey) }
      call { stream.open() }
    }
    guard stream.streamStatus == .opening else { fatalError("the source opened too soon") }
    call { stream.remove(from: thread.loop, forMode: .default) }
    call { stream.close() }
    thread.stop()
    return Times(times)
  }

  /// Many at once, all closed before they are open.
  static func crowd(of count: Int, openingIn time: Duration) -> (opens: Times, threads: Int) {
    let clock = ContinuousClock()
    let streams = (0..<count).map { _ in BlobInputStream(SlowSource(time), asynchronous: true) }
    let times = streams.map { stream in clock.measure { stream.open() } }
    var threads = 0
    let deadline = clock.now + time + .milliseconds(500)
    while clock.now < deadline {
      threads = max(threads, StreamThreads.fetching.count)
      Thread.sleep(forTimeInterval: 0.01)
    }
    for stream in streams { stream.close() }
    return (Times(times), threads)
  }

  /// From the moment a source could give a byte to the delegate's event for it, on the thread of a loop.
  static func readyToEvent(count: Int) -> Times {
    let source = TokenSource()
    let stream = BlobInputStream(source, asynchronous: true)
    let listener = Listener()
    stream.delegate = listener
    let thread = LoopThread()
    stream.schedule(in: thread.loop, forMode: .default)
    stream.open()
    var times: [Duration] = []
    let clock = MonotonicClock()
    for number in 1...count {
      Thread.sleep(forTimeInterval: number % 100 == 0 ? 0.01 : 0.0002)
      let start = clock.now
      source.give()
      guard let heard = listener.await(number) else { fatalError("event \(number) did not come") }
      times.append(heard - start)
    }
    stream.close()
    thread.stop()
    return Times(times)
  }

  /// Notes when it heard of bytes, and reads one.
  private final class Listener: NSObject, StreamDelegate, @unchecked Sendable {
    // The monitor guards what it holds, and nothing else changes.
    private let heard = Monitor((count: 0, at: Duration.zero))

    func stream(_ stream: Stream, handle event: Stream.Event) {
      guard event == .hasBytesAvailable, let stream = stream as? InputStream else { return }
      let now = MonotonicClock().now
      var byte: UInt8 = 0
      guard stream.read(&byte, maxLength: 1) == 1 else { fatalError("told of bytes, and there is none") }
      heard.update { $0 = ($0.count + 1, now) }
    }

    func await(_ number: Int) -> Duration? { heard.wait(atMost: .seconds(10)) { $0.count >= number ? $0.at : nil } }
  }
}

/// A source that takes its time to open.
private struct SlowSource: BlobSource {
  private let time: Duration
  private let source = DataSource("bytes")
  var access: BlobAccess { .random }

  init(_ time: Duration) { self.time = time }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try MonotonicClock().sleep(time, cancel, "open a slow source")
    return try source.open(at: offset, cancel)
  }
}

/// A source that has a byte each time it is given one.
private struct TokenSource: BlobSource {
  private let tokens = Monitor(0)
  var access: BlobAccess { .sequential }

  func give() { tokens.update { $0 += 1 } }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: nil) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader { Reader(tokens, cancel) }

  private final class Reader: BlobReader {
    let info = BlobInfo(length: nil)
    private let tokens: Monitor<Int>
    private let cancel: Cancellation

    init(_ tokens: Monitor<Int>, _ cancel: Cancellation) {
      self.tokens = tokens
      self.cancel = cancel
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let tokens = tokens
      return try cancel.whileWaiting(wakeUp: { tokens.update { _ in } }) { () throws(BlobError) in
        try tokens.wait { tokens throws(BlobError) -> Int? in
          try cancel.check("wait for a token")
          if tokens == 0 { return nil }
          tokens -= 1
          buffer[0] = 1
          return 1
        }
      }
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() {}
  }
}
