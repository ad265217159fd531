import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// A server stores a file, and its response repeats a credential.
@Suite struct RepeatedSecretTests {
  private static let headers: HTTPHeaders = ["Authorization": "Bearer s3kr-t0ken-1"]
  private static let answer = HTTPResponse.status(
    201, ["Location": "/up/s3kr-t0ken-1", "ETag": "\"s3kr-t0ken-1\"", "Upload-Offset": "1000"])

  @Test(arguments: ["put", "form", "tus"]) func aFileThatIsStoredCountsAndItsPlaceIsNotKept(_ name: String) async throws
  {
    let uploadProtocols: [String: any UploadProtocol] = ["put": PlainPut(), "form": FormPost(), "tus": Tus()]
    let uploadProtocol = try #require(uploadProtocols[name])
    let script = Script(Self.answer)
    let one = uploader(
      uploadProtocol, script, headers: Self.headers, limits: PartLimits(firstPart: .max))
    let result = try #require(try await one.upload(PatternSource(length: 1000), as: "a.mov", overwrite: true))
    #expect(result.journaled?.contains("s3kr") != true, "\(result)")
    #expect(script.methods.count { $0 != "HEAD" } == 1)
  }

  /// The upload cannot be resumed without its URL, which contains the credential and must not be stored.
  @Test func anUploadThatIsOnlyBegunIsRefused() async throws {
    let script = Script(.status(201, ["Location": "/up/s3kr-t0ken-1"]))
    let error = await uploader(Tus(wholeUpTo: 0), script, headers: Self.headers).failure()
    #expect(error?.message.contains("repeats a credential") == true, "\(error as Any)")
    #expect(error?.message.contains("s3kr") == false && script.methods == ["POST"])
  }

  /// A source may be read from a URL whose whole query is the secret.
  @Test(arguments: ["s3kr-t0ken-1", "v=2&s3kr-t0ken-1", "sig=s3kr-t0ken-1"])
  func aQueryIsASecret(_ query: String) {
    let secrets = RequestSecrets(query: query)
    #expect(secrets.removed(from: Self.answer).head.headers["ETag"] == nil)
  }

  /// A gateway may accept a request, and say so in a text that repeats the request.
  @Test(arguments: ["put", "form", "tus", "resumable"], [202, 203, 206, 207, 299, 403])
  func anErrorDoesNotShowSecretsThatTheResponseRepeats(_ name: String, _ status: Int) async throws {
    let uploadProtocols: [String: any UploadProtocol] = [
      "put": PlainPut(), "form": FormPost(), "tus": Tus(wholeUpTo: 0), "resumable": IETFResumable(),
    ]
    for text in ["queued: Bearer s3kr-t0ken-1", "queued: s3kr%2Dt0ken%2D1"]
      + (name == "form" ? ["queued: qu3ry-s3kr"] : [])
    {
      let script = Script { _, _ throws(TransportError) in
        HTTPResponse(head: HTTPHead(status: status, headers: ["Content-Type": "text/plain"]), body: Array(text.utf8))
      }
      var one = uploader(
        try #require(uploadProtocols[name]), script, headers: Self.headers, limits: PartLimits(firstPart: .max))
      one.destination.endpoint = HTTPURL("http://media.example/in/?query=qu3ry-s3kr")!
      let error = await one.failure()
      #expect(error?.message.contains("\(status)") == true, "\(error as Any)")
      #expect(error?.message.contains("queued") == false, "\(error as Any)")
    }
    if name == "tus" { return }  // its message has no text of the server
    let script = Script { _, _ throws(TransportError) in .status(status, text: "queued") }
    let uploadProtocol = try #require(uploadProtocols[name])
    let error = await uploader(uploadProtocol, script, headers: Self.headers, limits: PartLimits(firstPart: .max))
      .failure()
    #expect(error?.message.contains("queued") == true, "what repeats no secret is shown: \(error as Any)")
  }
}
