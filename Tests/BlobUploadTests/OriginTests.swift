import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Testing

@testable import BlobUpload

/// Tests which requests a protocol sends, and to which origin.
@Suite struct OriginTests {
  private static let secret: HTTPHeaders = ["Authorization": "Bearer secret"]

  @Test(arguments: [
    "http://elsewhere.example/up/1", "//elsewhere.example/up", "https://media.example/up", "http://media.example:81/u",
  ])
  func aLocationElsewhereIsRefusedAndNotAsked(_ location: String) async {
    let script = Script(.status(201, ["Location": location]), .at(1000))
    let error = await uploader(Tus(), script, headers: Self.secret).failure()
    #expect(error?.side == .destination)
    #expect(script.requests.allSatisfy { $0.url.origin == host.origin })
    #expect(script.requests.count == 1)
    #expect(error?.message.contains(host.origin) == true)
    #expect(error?.message.contains(host.resolve(location)!.origin) == true)
    #expect(error?.message.contains("secret") == false)
  }

  @Test func aSessionElsewhereIsNotAsked() async {
    let script = Script(.at(1000))
    let one = uploader(Tus(), script, headers: Self.secret)
    let source = PatternSource(length: 1000)
    let session = UploadSession(state: ["url": "http://elsewhere.example/up/1"])
    let error = await #expect(throws: UploadError.self) {
      _ = try await one.upload(source, source.info, to: one.destination.target("a", length: 1000), resuming: session)
    }
    await one.discard(session)
    #expect(script.requests.isEmpty)
    #expect(error?.message.contains("http://elsewhere.example") == true)
    #expect(error?.message.contains(host.origin) == true)
  }

  @Test func credentialsGoWithEveryRequest() async {
    let script = Script(.created, .at(500), .status(500), .at(500, of: 1000), .at(1000))
    #expect(await uploader(Tus(), script, partSize: 500, headers: Self.secret).failure() == nil)
    #expect(script.requests.count == 5)
    #expect(script.requests.allSatisfy { $0.headers["Authorization"] == "Bearer secret" })
  }

  @Test(arguments: ["", "not a url", "ftp://media.example/a"]) func aLocationThatIsNoneIsRefused(_ text: String) async {
    let error = await uploader(Tus(), Script(.status(201, ["Location": text]), .status(404)), retries: 0).failure()
    #expect(error != nil)
  }

  @Test func metadataCarriesTheBytesOfANameAsTheyAre() async throws {
    let script = Script(.created, .at(1))
    let name = BytePath(Array("Urlaub, 2020/b\u{00E4}r ".utf8) + [0xFF, 0xFE])
    #expect(await uploader(Tus(), script).failure(of: 1, as: name) == nil)
    let text = try #require(script.requests[0].headers["Upload-Metadata"])
    let pairs = text.split(separator: ",").map { $0.split(separator: " ") }
    let values = Dictionary(uniqueKeysWithValues: pairs.map { (String($0[0]), Data(base64Encoded: String($0[1]))) })
    #expect(values["filename"] == Data(name.name.bytes))
    #expect(values["relativePath"] == Data(name.bytes))
    #expect(values["filetype"] == Data("application/octet-stream".utf8))
    #expect(values["overwrite"] == nil)
    #expect(script.requests[0].url == host)
    #expect(script.requests[0].headers["Upload-Length"] == "1")
  }

  @Test func overwritingIsAskedForInTheProtocolsWay() async throws {
    let tus = Script(.created, .at(1))
    _ = try await uploader(Tus(), tus).upload(PatternSource(length: 1), as: "a", overwrite: true)
    #expect(tus.requests[0].headers["Upload-Metadata"]?.hasSuffix(",overwrite dHJ1ZQ==") == true)

    // The server does not tell which file is there.
    let put = Script(.status(405), .status(412), .status(201))
    _ = try await uploader(PlainPut(), put).upload(PatternSource(length: 1), as: "a", overwrite: true)
    #expect(put.methods == ["HEAD", "PUT", "PUT"])
    #expect(put.requests.map { $0.headers["If-Match"] } == [nil, "*", nil])
  }

  @Test func anEmptyFileIsNotSentAsAPartToWhoTakesNone() async {
    let script = Script(.status(201, ["Location": "/up/1"]))
    #expect(await uploader(Tus(), script).failure(of: 0) == nil)
    #expect(script.methods == ["POST"])
    #expect(script.requests[0].headers["Content-Type"] == nil)
  }
}
