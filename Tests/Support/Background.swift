import BlobTesting
import Blobs

/// The error that `work` throws; nil if it succeeds.
package func failure<Result>(_ work: () throws(BlobError) -> Result) -> BlobError? {
  do throws(BlobError) {
    _ = try work()
    return nil
  } catch {
    return error
  }
}

/// Runs `work` on its own thread; `value()` waits for its result.
package final class Background<Result: Sendable>: Sendable {
  private let result = Monitor<Result?>(nil)

  package init(_ work: @escaping @Sendable () -> Result) {
    SystemThread.start("test") { [result] in
      let value = work()
      result.update { $0 = value }
    }
  }

  /// nil if `work` has not ended within `limit`.
  package func value(within limit: Duration = .seconds(30)) -> Result? { result.wait(atMost: limit) { $0 } }
}
