import Blobs
import Foundation

/// The implementation behind a Foundation stream. Any thread may call it.
///
/// The lock is never held while a source, a delegate or a client is called. A thread that uses the reader has the turn:
/// no other thread uses the reader meanwhile, and a thread that needs it waits or is called later.
final class StreamCore: @unchecked Sendable {
  // `lock` guards every `var` that is not weak. `stream` is set once, before any other thread knows the core.

  enum Phase { case new, opening, open, atEnd, failed, closed }

  /// Where the operations that block on the source run.
  enum Manner {
    /// In `open` and `read`, on the caller's thread.
    case synchronous
    /// Reads run on the caller's thread; opening runs on these threads, and `read` waits for it.
    case opening(on: StreamThreads)
    /// All operations run on these threads, and events report progress.
    case asynchronous(on: StreamThreads)
  }

  let source: any BlobSource
  let manner: Manner
  let block: Int
  let cancel = Cancellation()
  let lock = NSCondition()

  weak var stream: BlobInputStream?
  var phase = Phase.new
  var failure: NSError?
  /// Offset of the byte that `read` returns next.
  var offset: Int64 = 0
  /// Offset of the first byte of the body, from which reopened streams count; nil before `open`. A reopened stream has
  /// that of the stream it was made from.
  var start: Int64?
  /// The reader's position differs from `offset`.
  var mustSeek = false
  /// nil if the length is known only at the end.
  var length: Int64?
  var reader: BufferedReader?
  /// A thread has the turn.
  var isBusy = false
  /// An asynchronous `read` found no bytes, and none has succeeded since.
  var cameEarly = false

  var pending: Stream.Event = []
  var teller = SingleDelivery()
  var mustRing = false
  weak var delegate: (any StreamDelegate)?
  var client: HeldClient?
  var reportsErrors: Bool
  private(set) lazy var bell = RunLoopSignal { [weak self] in self?.deliver() }

  init(_ source: any BlobSource, _ manner: Manner, block: Int, reportsErrors: Bool) {
    self.source = source
    self.manner = manner
    self.block = block
    self.reportsErrors = reportsErrors
    // The lazy property is initialized here, because two threads could otherwise initialize it at the same time.
    _ = bell
  }

  /// Creates another core over the same source, in the same mode, that begins `count` bytes after the body's start.
  func afresh(skipping count: Int64 = 0) -> StreamCore {
    locked {
      let core = StreamCore(source, manner, block: block, reportsErrors: reportsErrors)
      let start = self.start ?? offset
      core.start = start
      core.offset = count > .max - start ? .max : start + count
      return core
    }
  }

  var isAsynchronous: Bool { if case .asynchronous = manner { true } else { false } }

  /// Releases the lock, and signals the run loops if events became pending.
  func unlock() {
    let rings = mustRing
    mustRing = false
    lock.unlock()
    if rings { bell.ring() }
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
      case .failed: reportsErrors ? .error : .open
      }
    }
  }

  var error: NSError? {
    locked { failure ?? (cameEarly ? NSError(domain: NSPOSIXErrorDomain, code: Int(EAGAIN)) : nil) }
  }

  /// False at the end, before `open`, after `close`, and while an asynchronous stream has no bytes yet; consumers take
  /// it for the end. True after an error, so that they read and get the error.
  var hasBytes: Bool {
    locked {
      switch phase {
      case .new, .atEnd, .closed: false
      case .failed: true
      case .opening, .open: !isAsynchronous || !isBusy && !lent.isEmpty
      }
    }
  }

  /// Bytes that `read` returns next without waiting. Valid until the next `read` or `close`. Only call with the lock,
  /// while no thread has the turn.
  var lent: UnsafeRawBufferPointer {
    guard let reader, !mustSeek else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return reader.lent
  }

  // MARK: Closing

  /// Has no effect before `open`. No event follows, and a blocked `read` ends.
  func close() {
    var reader: BufferedReader?
    lock.lock()
    if phase == .new || phase == .closed { return unlock() }
    phase = .closed
    pending = []
    // A thread that has the turn releases the reader when it gives up the turn.
    if !isBusy { swap(&reader, &self.reader) }
    lock.broadcast()
    unlock()
    retire()
  }

  /// Ends all waits and events; the stream is closed or being deallocated.
  func retire() {
    cancel.cancel()
    bell.invalidate()
  }
}
