import Blobs
import Foundation

/// The implementation behind a Foundation stream. Any thread may call it.
///
/// The lock is never held while a source, a delegate or a client is called. A thread that uses the reader has the turn:
/// no other thread uses the reader meanwhile, and a thread that needs it waits or is called later.
final class StreamCore: @unchecked Sendable {
  // `lock` guards every `var`. `receivers.stream` is set once, before any other thread knows the core.

  enum Phase { case new, opening, open, atEnd, failed, closed }

  /// Where the operations that block on the source run.
  enum StreamMode {
    /// In `open` and `read`, on the caller's thread.
    case synchronous
    /// Reads run on the caller's thread; opening runs on these threads, and `read` waits for it.
    case opening(on: StreamThreads)
    /// All operations run on these threads, and events report progress.
    case asynchronous(on: StreamThreads)
  }

  let source: any BlobSource
  let mode: StreamMode
  let block: Int
  let cancel = Cancellation()
  let lock = NSCondition()

  var phase = Phase.new
  var failure: NSError?
  var position = ReadPosition()
  /// A thread has the turn.
  var isBusy = false

  var pending = PendingEvents()
  var receivers: EventReceivers
  private(set) lazy var signal = RunLoopSignal { [weak self] in self?.deliver() }

  init(_ source: any BlobSource, _ mode: StreamMode, block: Int, reportsErrors: Bool) {
    self.source = source
    self.mode = mode
    self.block = block
    receivers = EventReceivers(reportsErrors: reportsErrors)
    // The lazy property is initialized here, because two threads could otherwise initialize it at the same time.
    _ = signal
  }

  /// Creates another core over the same source, in the same mode, that begins `count` bytes after the body's start.
  func afresh(skipping count: Int64 = 0) -> StreamCore {
    locked {
      let core = StreamCore(source, mode, block: block, reportsErrors: receivers.reportsErrors)
      let start = position.start ?? position.offset
      core.position = ReadPosition(offset: count > .max - start ? .max : start + count, start: start)
      return core
    }
  }

  var isAsynchronous: Bool { if case .asynchronous = mode { true } else { false } }

  /// Releases the lock, and signals the run loops if events became pending.
  func unlock() {
    let rings = pending.takeSignal()
    lock.unlock()
    if rings { signal.raise() }
  }

  func locked<Result>(_ body: () -> Result) -> Result {
    lock.lock()
    defer { unlock() }
    return body()
  }

  // MARK: State

  var status: Stream.Status {
    locked {
      switch phase {
      case .new: .notOpen
      case .opening: .opening
      case .open: .open
      case .atEnd: .atEnd
      case .closed: .closed
      case .failed: receivers.reportsErrors ? .error : .open
      }
    }
  }

  var error: NSError? {
    locked { failure ?? (position.cameEarly ? NSError(domain: NSPOSIXErrorDomain, code: Int(EAGAIN)) : nil) }
  }

  /// False at the end, before `open`, after `close`, and while an asynchronous stream has no bytes yet; consumers take
  /// it for the end. True after an error, so that they read and get the error.
  var hasBytes: Bool {
    locked {
      switch phase {
      case .new, .atEnd, .closed: false
      case .failed: true
      case .opening, .open: !isAsynchronous || !isBusy && !position.lent.isEmpty
      }
    }
  }

  // MARK: Closing

  /// Has no effect before `open`. No event follows, and a blocked `read` ends.
  func close() {
    lock.lock()
    if phase == .new || phase == .closed { return unlock() }
    phase = .closed
    pending.dropAll()
    // A thread that has the turn releases the reader when it gives up the turn.
    let reader = isBusy ? nil : position.reader.take()
    lock.broadcast()
    unlock()
    withExtendedLifetime(reader) {}
    retire()
  }

  /// Ends all waits and events; the stream is closed or being deallocated.
  func retire() {
    cancel.cancel()
    signal.invalidate()
  }
}
