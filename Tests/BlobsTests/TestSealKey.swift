import BlobCrypto
import Blobs

/// A recipient, and one seal for it, which only tests use for several sources.
let sealKey = TestSealKey()

struct TestSealKey: Sendable {
  let identity: SealIdentity
  let recipient: SealRecipient
  private let made: Result<FileSeal, BlobError>
  var seal: FileSeal { get throws(BlobError) { try made.get() } }

  init() {
    // The pair of the specification.
    identity = try! SealIdentity("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX")
    let recipient = try! SealRecipient("age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj")
    self.recipient = recipient
    made = Result { () throws(BlobError) in try FileSeal(to: [recipient]) }
  }
}
