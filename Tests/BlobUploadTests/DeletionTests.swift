import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests which responses confirm the deletion of an unfinished upload.
@Suite struct DeletionTests {
  private let session = UploadSession(state: ["url": "\(host)up/1", "length": "1000"])

  private func failure(_ uploadProtocol: any UploadProtocol, _ script: Script) async -> UploadError? {
    do throws(UploadError) {
      try await uploadProtocol.abort(
        session, UploadContext(transport: script, endpoint: host, traits: uploadProtocol.traits))
      return nil
    } catch {
      return error
    }
  }

  /// A server whose responses to HEAD show whether the upload still exists.
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

  /// Some servers respond 403 for an upload that they do not know.
  @Test(arguments: ["tus", "resumable"], [404, 410])
  func anUploadThatIsGoneMayBeRefused(_ name: String, _ head: Int) async {
    #expect(await failure(name == "tus" ? Tus() : IETFResumable(), server(delete: 403, head: head)) == nil)
  }

  /// A server without support for overridden methods may create another upload, or return a page.
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

  /// A login page, or the captive portal of a hotel, responds to any request like this.
  @Test(arguments: ["tus", "resumable", "s3"]) func aPageIsNoDeletion(_ name: String) async {
    let page = HTTPResponse(
      head: HTTPHead(status: 200, headers: ["Content-Type": "text/html; charset=utf-8"]), body: Array("<html>".utf8))
    let signer = S3Signer(S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s"), region: "us-east-1")
    let uploadProtocol: any UploadProtocol =
      switch name {
      case "tus": Tus()
      case "s3": S3Multipart(bucketPath: "/in/", signer: signer)
      default: IETFResumable()
      }
    var session = session
    session.state["id"] = "1"
    let script = Script(page)
    do throws(UploadError) {
      try await uploadProtocol.abort(
        session, UploadContext(transport: script, endpoint: host, traits: uploadProtocol.traits))
      Issue.record("a page was taken for a deletion")
    } catch {
      #expect(error.side == .file && error.message.contains("with a page, which does not say that it is deleted"))
    }
    #expect(script.methods.first == "DELETE")
  }

  /// The redirect would delete another resource instead of the upload.
  @Test(arguments: ["/", "/in/", "/in/up/2", "/in/up/1/x", "/in/up"], ["tus", "resumable"])
  func aDeletionGoesToNoOtherPath(_ location: String, _ name: String) async {
    let script = Script(.status(307, ["Location": location]), .status(204))
    let error = await failure(name == "tus" ? Tus() : IETFResumable(), script)
    #expect(error?.message.contains("a deletion there is one of something else") == true, "\(error as Any)")
    #expect(error?.side == .file)
    #expect(script.methods == ["DELETE"])
  }

  @Test(arguments: [307, 308], ["/in/up/1/", "/in/up/1?key=1"])
  func aDeletionGoesToTheSamePlaceByAnotherName(_ status: Int, _ location: String) async {
    let script = Script(.status(status, ["Location": location]), .status(204))
    #expect(await failure(Tus(), script) == nil)
    #expect(script.methods == ["DELETE", "DELETE"])
  }

  /// The method in the override field decides.
  @Test func aDeletionInAPostGoesToNoOtherPath() async {
    let script = Script { _, request throws(TransportError) in
      request.method == "DELETE" ? .status(405) : .status(307, ["Location": "/"])
    }
    #expect(await failure(Tus(), script) != nil)
    #expect(script.requests.allSatisfy { $0.url.path == "/in/up/1" })
  }
}
