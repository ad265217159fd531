import BlobTesting
import Blobs
import Synchronization

/// A clock that does not advance by itself; `sleep` advances it at once.
package final class ManualClock: BlockingClock {
  private let time: Mutex<(now: Duration, slept: Duration)>

  package init(_ now: Duration = .seconds(1000)) { time = Mutex((now, .zero)) }

  package var now: Duration { time.withLock { $0.now } }
  /// The sum of all sleeps.
  package var slept: Duration { time.withLock { $0.slept } }

  package func advance(_ duration: Duration) { time.withLock { $0.now += duration } }

  package func sleep(_ duration: Duration, _ cancel: Cancellation, _ operation: String) throws(BlobError) {
    try cancel.check(operation)
    time.withLock { time in
      time.now += duration
      time.slept += duration
    }
  }
}
