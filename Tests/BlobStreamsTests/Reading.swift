import BlobStreams
import BlobTesting
import Blobs
import Foundation

extension InputStream {
  /// One read; nil for -1.
  func readOnce(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = read(&bytes, maxLength: count)
    return read < 0 ? nil : Array(bytes.prefix(read))
  }
}

/// What `work` throws; nil when it succeeds.
func failure<Result>(_ work: () throws(BlobError) -> Result) -> BlobError? {
  do throws(BlobError) {
    _ = try work()
    return nil
  } catch {
    return error
  }
}

/// Runs `work` on a thread of its own; `value()` waits for what it returned.
final class Background<Result: Sendable>: Sendable {
  private let result = Monitor<Result?>(nil)

  init(_ work: @escaping @Sendable () -> Result) {
    SystemThread.start("test") { [result] in
      let value = work()
      result.update { $0 = value }
    }
  }

  /// nil when it is still at work after `limit`.
  func value(within limit: Duration = .seconds(10)) -> Result? { result.wait(atMost: limit) { $0 } }
}

/// Waits until `condition` holds; throws when it does not within ten seconds.
func until(_ what: String = "it", _ condition: () -> Bool) throws {
  let deadline = ContinuousClock.now + .seconds(10)
  while !condition() {
    if ContinuousClock.now > deadline { throw CheckFailure("\(what) never came about") }
    usleep(500)
  }
}
