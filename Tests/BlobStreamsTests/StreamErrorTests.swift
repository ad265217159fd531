import BlobStreams
import Blobs
import Foundation
import Testing

struct StreamErrorTests {
  @Test func streamErrorCarriesTheSourcesOwn() {
    let shown: any Error = BlobError(.permission, "open /film.mov: Permission denied", errno: 13).streamError
    let bridged = shown as NSError
    #expect(bridged.domain == BlobError.streamErrorDomain && bridged.code == 13)
    #expect(bridged.localizedDescription == "open /film.mov: Permission denied")
    #expect(BlobError(underlying: shown)?.code == .permission)
  }

  @Test func otherErrorsHaveNoneUnderneath() {
    #expect(BlobError(underlying: nil)?.code == nil)
    #expect(BlobError(underlying: POSIXError(.EAGAIN))?.code == nil)
  }
}
