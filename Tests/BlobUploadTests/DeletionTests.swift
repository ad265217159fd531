import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Which answers say that an unfinished upload is deleted.
@Suite struct DeletionTests {
  private let session = UploadSession(state: ["url": "\(host)up/1", "length": "1000"])

  private func failure(_ dialect: any UploadProtocol, _ script: Script) async -> UploadError? {
    do throws(UploadError) {
      try await dialect.abort(session, UploadContext(transport: script, origin: host.origin))
      return nil
    } catch {
      return error
    }
  }

  /// HEAD shows that it is still there.
  private func server(delete status: Int, post: Int? = nil, head: Int = 200) -> Script {
    Script { _, request throws(TransportError) in
      switch request.method {
      case "DELETE": .status(status)
      case "POST": .status(post ?? status, ["Location": "/up/2"])
      default: .status(head, ["Upload-Offset": "0", "Upload-Length": "1000", "Upload-Complete": "?0"])
      }
    }
  }

  @Test(arguments: ["tus", "resumable"], [200, 204, 404, 410])
  func aDeletionIsBelieved(_ name: String, _ status: Int) async {
    let script = server(delete: status)
    #expect(await failure(name == "tus" ? Tus() : IETFResumable(), script) == nil)
    #expect(script.methods == ["DELETE"])
  }

  @Test(arguments: ["tus", "resumable"], [202, 207, 301, 403, 405, 500, 501])
  func anythingElseIsNoDeletion(_ name: String, _ status: Int) async {
    let error = await failure(name == "tus" ? Tus() : IETFResumable(), server(delete: status))
    #expect(error != nil && !(error?.cause is KeepsUploads), "\(error as Any)")
    #expect([301].contains(status) || error?.side == .file, "\(error as Any)")
    if status == 202 { #expect(error?.recovery == .retry(after: nil)) }
  }

  /// Some servers say 403 of an upload that they do not know.
  @Test(arguments: ["tus", "resumable"], [404, 410])
  func anUploadThatIsGoneMayBeRefused(_ name: String, _ head: Int) async {
    #expect(await failure(name == "tus" ? Tus() : IETFResumable(), server(delete: 403, head: head)) == nil)
  }

  /// One that knows nothing of overridden methods may create another upload, or show a page.
  @Test(arguments: [200, 201, 202, 404]) func aPostThatIsTakenForSomethingElseDeletesNothing(_ post: Int) async {
    let error = await failure(Tus(), server(delete: 405, post: post))
    #expect(error?.status == 405 && error?.side == .file, "\(error as Any)")
    #expect(await failure(Tus(), server(delete: 405, post: 204)) == nil)
  }

  @Test(arguments: [403, 405, 501]) func aServerThatOffersNoDeletionKeepsItsUploads(_ status: Int) async throws {
    var tus = Tus().offered(["Tus-Version": "1.0.0", "Tus-Extension": "creation,checksum"])
    let error = await failure(tus, server(delete: status))
    #expect(error?.cause is KeepsUploads && error?.message.contains("deletes no uploads") == true, "\(error as Any)")
    tus = tus.offered(["Tus-Version": "1.0.0", "Tus-Extension": "creation, termination"])
    #expect(await failure(tus, server(delete: status))?.cause is KeepsUploads == false)
  }
}
