import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// The source has changed since the server got its bytes for an upload.
@Suite struct ReplacedUploadTests {
  /// The first run ends without knowing the server's offset.
  @Test(arguments: ["tus", "resumable"], [600, 1000])
  func onlyAnUploadThatIsNotWholeIsDeleted(_ name: String, _ held: Int64) async throws {
    let desk = try await Desk()
    let uploadProtocol: any UploadProtocol = name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable(wholeUpTo: 0)
    let isFirstRun = Mutex(true)
    let script = Script { _, request throws(TransportError) in
      let isFirst = isFirstRun.withLock { $0 }
      switch request.method {
      case "POST": return .emptyCreation(name)
      case "PATCH" where isFirst: throw TransportError(.broken, "the connection broke")
      case "HEAD" where isFirst: return .status(503)
      case "HEAD": return .holding(held, of: 1000, name)
      case "DELETE": return .status(204)
      default: return .holding(1000, of: 1000, name)
      }
    }
    let first = try await desk.run(desk.queue(script, uploadProtocol), ["a"])
    #expect(first.error("a") != nil)
    let count = script.methods.count
    isFirstRun.withLock { $0 = false }
    #expect(try await desk.run(desk.queue(script, uploadProtocol), ["a"], seed: 1).sent == 1)
    let expected = held == 1000 ? ["HEAD", "POST", "PATCH"] : ["HEAD", "DELETE", "POST", "PATCH"]
    #expect(Array(script.methods.dropFirst(count)) == expected)
  }
}
