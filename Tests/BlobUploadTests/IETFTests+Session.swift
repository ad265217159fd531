import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

// What is kept of the server's answers.
extension IETFTests {
  /// A URL in an interim response that contains a secret is not stored.
  @Test func aPlaceThatRepeatsACredentialIsNotKept() async throws {
    let peer = ScriptedPeer([
      .readRequest,
      .send(
        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\nLocation: /up/s3cr%45tw0rd/1\r\n\r\n"
          + "HTTP/1.1 201 Created\r\nUpload-Complete: ?1\r\nContent-Length: 0\r\n\r\n"),
    ])
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/"))
    let events = RecordedEvents()
    let context = UploadContext(
      transport: SocketTransport(), headers: ["Authorization": "Bearer s3cretw0rd"], endpoint: endpoint,
      traits: IETFResumable().traits, events: events)
    let target = UploadDestination(endpoint: endpoint, uploadProtocol: IETFResumable(), limits: PartLimits()).target(
      "a", length: 3)
    let first = FirstPart(Part(number: 1, start: 0, length: 3, isLast: true), BlobSlice(DataSource("abc"), length: 3))
    _ = try await IETFResumable().create(target, first: first, context)
    #expect(events.sessions.isEmpty && events.bytes == 3)
  }

  @Test func itsAgeIsKept() async throws {
    let events = RecordedEvents()
    let script = Script(.status(201, ["Location": "/up/1", "Upload-Complete": "?0", "Upload-Limit": "max-age=500"]))
    let context = UploadContext(transport: script, endpoint: host, traits: IETFResumable().traits, events: events)
    let target = UploadDestination(endpoint: host, uploadProtocol: IETFResumable(), limits: PartLimits()).target(
      "a", length: 9)
    _ = try await IETFResumable().create(target, first: nil, context)
    let left = try #require(events.sessions.last?.expires) - currentSeconds()
    #expect((400...500).contains(left))
  }
}
