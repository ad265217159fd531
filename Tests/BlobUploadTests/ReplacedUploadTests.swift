import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// The source has changed since the server got its bytes for an upload.
@Suite struct ReplacedUploadTests {
  /// The first run ends without knowing the server's offset.
  @Test(arguments: ["tus", "resumable"], [600, 1000])
  func onlyAnUploadThatIsNotWholeIsDeleted(_ name: String, _ held: Int64) async throws {
    let (outcome, methods) = try await Desk().runAfterCut(name, seed: 1) { request in
      switch request.method {
      case "HEAD": .holding(held, of: 1000, name)
      case "DELETE": .status(204)
      default: .holding(1000, of: 1000, name)
      }
    }
    #expect(outcome.sent == 1)
    let expected = held == 1000 ? ["HEAD", "POST", "PATCH"] : ["HEAD", "DELETE", "POST", "PATCH"]
    #expect(methods == expected)
  }
}
