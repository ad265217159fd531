import Blobs
import Synchronization

/// Repeats attempts with pauses as long as they fail because of the connection or of a busy server.
struct Patience {
  private let failures: any ReadFailures
  private let cancel: Cancellation
  private let what: String
  private var isCounting = false
  /// Bytes received since the first counted failure.
  private var received = 0
  /// Bytes that must arrive before the failure count is reset. Otherwise a server that sends one byte per attempt would
  /// be retried once for every byte of the file.
  static let leastProgress = 16 << 10

  init(_ failures: any ReadFailures, _ cancel: Cancellation, _ what: String) {
    (self.failures, self.cancel, self.what) = (failures, cancel, what)
  }

  /// Counts received bytes. After enough of them the failure count starts again at 0.
  mutating func noteReceived(_ count: Int) {
    if !isCounting { return }
    received += count
    if received < Self.leastProgress { return }
    failures.reset()
    (isCounting, received) = (false, 0)
  }

  /// Returns when the next attempt may begin, or throws `error` if no attempts are left or a retry cannot help.
  mutating func wait(after error: BlobError) throws(BlobError) {
    guard error.code == .invalidated else { throw error }
    isCounting = true
    do throws(BlobError) { try failures.wait(after: error, cancel, what) } catch {
      var error = error
      // `.invalidated` would invite the caller to retry, which has already failed here.
      if error.code == .invalidated { error.code = .io }
      throw error
    }
  }

  mutating func run<Answer>(_ body: () throws(BlobError) -> Answer) throws(BlobError) -> Answer {
    while true {
      do throws(BlobError) { return try body() } catch { try wait(after: error) }
    }
  }
}

/// The failures in a row of one reader of a file on a server, which decide about its next attempt. Used by one thread at a
/// time.
package protocol ReadFailures: AnyObject, Sendable {
  /// Counts a failure with code `.invalidated`, and blocks until the next attempt may begin. Throws the error if there is to
  /// be none, and `.cancelled` once `cancel` was cancelled. `what`: the operation, for messages.
  func wait(after error: BlobError, _ cancel: Cancellation, _ what: String) throws(BlobError)
  /// Counts from 0 again.
  func reset()
}

/// Allows a fixed number of failures, with growing pauses after them.
final class FixedRetries: ReadFailures {
  private let retries: Int
  private let failures = Mutex(0)

  init(_ retries: Int) { self.retries = retries }

  func reset() { failures.withLock { $0 = 0 } }

  func wait(after error: BlobError, _ cancel: Cancellation, _ what: String) throws(BlobError) {
    let count = failures.withLock { failures in
      failures += 1
      return failures
    }
    if count > retries {
      var error = error
      if count > 1 { error.message += " (after \(count) attempts)" }
      throw error
    }
    try MonotonicClock().sleep(.milliseconds(50 << min(count, 7)), cancel, what)
  }
}

/// The cause of the error for a response that is no success.
package struct RefusedRead: Error {
  package let response: HTTPResponse
}
