import BlobStreams
import BlobTesting
import Blobs
import Foundation
import Synchronization

/// Whether events arrive, each once, where they should.
enum Events {
  /// One byte at an event, in two loops; both have a mode that they never run.
  static func deliver(_ count: Int, asynchronous: Bool) -> (lost: Int, astray: Int) {
    let threads = [LoopThread(), LoopThread()]
    let tally = Tally(Set(threads.map { ObjectIdentifier($0.thread) }))
    let source = PatternSource(length: Int64(count), preferredRead: 1)
    let stream = BlobInputStream(source, asynchronous: asynchronous, block: 64)
    stream.delegate = tally
    for thread in threads {
      stream.schedule(in: thread.loop, forMode: .default)
      stream.schedule(in: thread.loop, forMode: RunLoop.Mode("never run"))
    }
    stream.open()
    let deadline = Date(timeIntervalSinceNow: 120)
    while tally.read.load(ordering: .relaxed) < count && Date() < deadline { Thread.sleep(forTimeInterval: 0.005) }
    for thread in threads { thread.stop() }
    return (abs(count - tally.heard.load(ordering: .relaxed)), tally.astray.load(ordering: .relaxed))
  }

  private final class Tally: NSObject, StreamDelegate, @unchecked Sendable {
    // Only atomics change.
    let heard = Atomic(0)
    let read = Atomic(0)
    let astray = Atomic(0)
    private let threads: Set<ObjectIdentifier>

    init(_ threads: Set<ObjectIdentifier>) { self.threads = threads }

    func stream(_ stream: Stream, handle event: Stream.Event) {
      if !threads.contains(ObjectIdentifier(Thread.current)) || RunLoop.current.currentMode != .default {
        astray.add(1, ordering: .relaxed)
      }
      guard event == .hasBytesAvailable, let stream = stream as? InputStream else { return }
      heard.add(1, ordering: .relaxed)
      var byte: UInt8 = 0
      read.add(stream.read(&byte, maxLength: 1), ordering: .relaxed)
    }
  }
}
