import BlobServerS3
import TestSupport
import Testing

/// The bucket ends the multipart upload of a file that is under way, as a lifecycle rule does, or loses its parts.
struct BucketLossTests {
  @Test(arguments: [true, false]) func anUploadWithoutItsPartsIsGone(isWhollyGone: Bool) throws {
    let peer = S3Peer()
    let server = try TestServer(in: peer)
    let bytes = pattern(6 << 20)
    let version = ("Upload-Draft-Interop-Version", "8")
    let client = try server.client()
    var created = try client.ask("PUT", "/a.jpg", [version, ("Upload-Complete", "?0")], body: bytes)
    let upload = try #require(created["Location"])
    while created.status == 104 { created = try client.answer() }
    #expect(peer.uploads.count == 1)
    peer.change { state in
      if isWhollyGone { state.uploads = [:] }
      for key in state.uploads.keys { state.uploads[key]?.parts = [:] }
    }
    let rest = [
      version, ("Upload-Complete", "?1"), ("Upload-Offset", "\(bytes.count)"),
      ("Content-Type", "application/partial-upload"),
    ]
    let end = try server.ask("PATCH", upload, rest, body: [9])
    #expect(end.status == 410, "\(end.status) \(end.text)")
    // The client begins anew, and nothing is left in the bucket of the first upload.
    let again = try server.ask("PUT", "/a.jpg", body: bytes + [9])
    #expect(again.status == 201, "\(again.text)")
    #expect(peer.objects["in/a.jpg"]?.bytes == bytes + [9])
    #expect(try eventually { peer.uploads.isEmpty })
  }
}
