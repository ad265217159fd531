import Blobs
import Foundation

/// What is behind a stream's Foundation face. A stream belongs to nobody's thread: its core is called from any.
///
/// The lock is never held while a source, a delegate or a client is called. Whoever is at work with the reader has the
/// turn: nobody else touches it then, and who wants it waits, or comes back.
final class StreamCore: @unchecked Sendable {
  // `lock` guards every `var` that is not weak; `stream` is set once, before anyone else knows of the core.

  enum Phase { case new, opening, open, atEnd, failed, closed }

  /// Where the work is done that waits for the source.
  enum Manner {
    /// In `open` and `read` themselves.
    case synchronous
    /// In `read`; but opening on these threads, which `read` waits for.
    case opening(on: StreamThreads)
    /// All of it on these threads; events tell.
    case asynchronous(on: StreamThreads)
  }

  let source: any BlobSource
  let manner: Manner
  let block: Int
  let cancel = Cancellation()
  let lock = NSCondition()

  weak var stream: BlobInputStream?
  var phase = Phase.new
  /// Set once.
  var failure: NSError?
  /// Of the byte that `read` gives next.
  var offset: Int64 = 0
  /// Where a stream over the same source would begin.
  var start: Int64 = 0
  /// The reader is elsewhere.
  var mustSeek = false
  /// nil where only the end will tell.
  var length: Int64?
  var reader: BufferedReader?
  /// Someone has the turn.
  var isBusy = false
  /// An asynchronous `read` found nothing, and none has succeeded since.
  var cameEarly = false

  var pending: Stream.Event = []
  var teller = OneTeller()
  var mustRing = false
  weak var delegate: (any StreamDelegate)?
  var client: HeldClient?
  var reportsErrors: Bool
  private(set) lazy var bell = RunLoopBell { [weak self] in self?.deliver() }

  init(_ source: any BlobSource, _ manner: Manner, block: Int, reportsErrors: Bool) {
    self.source = source
    self.manner = manner
    self.block = block
    self.reportsErrors = reportsErrors
    // Made now, and not by the first two threads at once.
    _ = bell
  }

  /// Another one over the same source, in the same manner, that begins where this one did.
  func afresh() -> StreamCore {
    locked {
      let core = StreamCore(source, manner, block: block, reportsErrors: reportsErrors)
      core.offset = phase == .new ? offset : start
      return core
    }
  }

  var isAsynchronous: Bool { if case .asynchronous = manner { true } else { false } }

  /// Lets go of the lock, and rings for what was told meanwhile.
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

  // MARK: What is asked of a stream

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

  /// False only if there is nothing to wait for: consumers take it for the end. After an error it is true, so that they
  /// read, and meet it.
  var hasBytes: Bool {
    locked {
      switch phase {
      case .new, .atEnd, .closed: false
      case .failed: true
      case .opening, .open: !isAsynchronous || !isBusy && !lent.isEmpty
      }
    }
  }

  /// Bytes that `read` gives next without waiting, until the next `read` or `close`. Only with the lock, and no turn taken.
  var lent: UnsafeRawBufferPointer {
    guard let reader, !mustSeek else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return reader.lent
  }

  // MARK: The end

  /// Nothing before `open`; nothing is told after it. A blocked `read` ends.
  func close() {
    var reader: BufferedReader?
    lock.lock()
    if phase == .new || phase == .closed { return unlock() }
    phase = .closed
    pending = []
    // Who has the turn drops the reader when it ends.
    if !isBusy { swap(&reader, &self.reader) }
    lock.broadcast()
    unlock()
    retire()
  }

  /// Nobody will ask any more.
  func retire() {
    cancel.cancel()
    bell.invalidate()
  }
}
