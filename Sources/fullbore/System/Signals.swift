import Blobs
import Platform
import Synchronization

/// Handles SIGINT and SIGTERM on a thread on which any function may be called.
///
/// The first signal asks for an orderly end; a second SIGINT exits at once with status 130.
enum Signals {
  private static let handler = SignalHandler()
  private static let hangupHandler = SignalHandler()
  private static let ends = makePipe()

  /// Replaces the handler, which is called with the signal's number. Call this after creating the object that is to be
  /// stopped.
  static func onInterrupt(_ handler: @escaping @Sendable (Int32) -> Void) {
    if self.handler.replace(with: handler) {
      isListening
      catchSignal(SIGINT)
      catchSignal(SIGTERM)
    }
  }

  /// Sets the handler of SIGHUP, which then does not end the program any more.
  static func onHangup(_ handler: @escaping @Sendable () -> Void) {
    if hangupHandler.replace(with: { _ in handler() }) {
      isListening
      catchSignal(SIGHUP)
    }
  }

  /// All SIGINT and SIGTERM signals from now on, buffered until the stream is read.
  static func interruptions() -> AsyncStream<Int32> {
    let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
    onInterrupt { continuation.yield($0) }
    return stream
  }

  /// The thread that calls the handlers runs once this was read.
  private static let isListening: Void = {
    let ends = Signals.ends
    signalEnd.store(ends.write, ordering: .sequentiallyConsistent)
    signalCount.store(0, ordering: .sequentiallyConsistent)
    SystemThread.start("fullbore-signal") {
      var number: UInt8 = 0
      while true {
        let count = read(ends.read, &number, 1)
        if count == 1 { (Int32(number) == SIGHUP ? hangupHandler : handler).call(Int32(number)) }
        if count == 0 || count < 0 && errno != EINTR { return }
      }
    }
  }()
}

/// The handler of signals. Thread-safe.
final class SignalHandler: Sendable {
  /// Wraps the closure, because a closure that is itself the value of a lock is wrapped again at each access.
  private struct State {
    var call: (@Sendable (Int32) -> Void)?
  }
  private let state = Mutex(State())

  /// Returns true if there was no handler before.
  func replace(with call: @escaping @Sendable (Int32) -> Void) -> Bool {
    state.withLock { state in
      defer { state.call = call }
      return state.call == nil
    }
  }

  /// Calls the handler outside the lock, so that the handler may replace itself.
  func call(_ number: Int32) { state.withLock { $0.call }?(number) }
}

// Read by the signal handler below, which may run on any thread at any time and may use only async-signal-safe
// operations. Both are accessed before the handler is installed, so it triggers no lazy initialization.
private let signalEnd = Atomic<Int32>(-1)
private let signalCount = Atomic<Int>(0)

private func catchSignal(_ number: Int32) {
  var action = sigaction()
  #if os(Linux)
    action.__sigaction_handler.sa_handler = handleSignal
  #else
    action.__sigaction_u.__sa_handler = handleSignal
  #endif
  action.sa_flags = SA_RESTART
  sigaction(number, &action, nil)
}

private func handleSignal(_ number: Int32) {
  let before = errno
  if number == SIGINT && signalCount.add(1, ordering: .relaxed).oldValue > 0 { _exit(ExitStatus.interrupted.rawValue) }
  var byte = UInt8(truncatingIfNeeded: number)
  _ = write(signalEnd.load(ordering: .relaxed), &byte, 1)
  errno = before
}
