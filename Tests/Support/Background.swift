import BlobTesting
import Blobs

/// What `work` throws; nil when it succeeds.
package func failure<Result>(_ work: () throws(BlobError) -> Result) -> BlobError? {
  do throws(BlobError) {
    _ = try work()
    return nil
  } catch {
    return error
  }
}

/// Runs `work` on a thread of its own; `value()` waits for what it returned.
package final class Background<Result: Sendable>: Sendable {
  private let result = Monitor<Result?>(nil)

  package init(_ work: @escaping @Sendable () -> Result) {
    SystemThread.start("test") { [result] in
      let value = work()
      result.update { $0 = value }
    }
  }

  /// nil when it is still at work after `limit`.
  package func value(within limit: Duration = .seconds(30)) -> Result? { result.wait(atMost: limit) { $0 } }
}
