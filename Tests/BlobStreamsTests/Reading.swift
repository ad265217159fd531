import BlobStreams
import BlobTesting
import Blobs
import Foundation

extension InputStream {
  /// Reads once; nil for -1.
  func readOnce(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let read = read(&bytes, maxLength: count)
    return read < 0 ? nil : Array(bytes.prefix(read))
  }
}

/// Waits until `condition` is true; throws after thirty seconds.
func until(_ what: String = "it", _ condition: () -> Bool) throws {
  let deadline = ContinuousClock.now + .seconds(30)
  while !condition() {
    if ContinuousClock.now > deadline { throw CheckFailure("\(what) never came about") }
    usleep(500)
  }
}
