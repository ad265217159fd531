import Blobs
import Platform
import Testing

@testable import BlobServer

struct ConnectionLimitTests {
  @Test func noLimitOfFilesIsExceeded() {
    for files in 0...70_000 {
      let most = ConnectionLimit.connections(opening: files, workers: 8)
      #expect(most == 0 || ConnectionLimit.files(for: most, workers: 8) <= files)
      #expect(ConnectionLimit.files(for: most + 1, workers: 8) > files, "there is room for one more")
    }
  }
}
