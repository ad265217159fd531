import BlobCrypto
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
    // The client begins anew, and nothing is left of the first upload.
    #expect(try server.ask("HEAD", upload, [version]).status == 410)
    #expect(try eventually { server.folder.kept.isEmpty }, "\(server.folder.kept)")
    let again = try server.ask("PUT", "/a.jpg", body: bytes + [9])
    #expect(again.status == 201, "\(again.text)")
    #expect(peer.objects["in/a.jpg"]?.bytes == bytes + [9])
    #expect(try eventually { peer.uploads.isEmpty })
  }

  /// The part that follows is not the last one. `isTus`: which protocol the client speaks. `hasDigest`: the bytes count only
  /// once their digest was compared.
  @Test(arguments: [(true, false), (false, false), (true, true), (false, true)])
  func anUploadEndsWithThePartThatIsRefused(isTus: Bool, hasDigest: Bool) throws {
    let peer = S3Peer()
    let server = try TestServer(in: peer)
    let bytes = pattern(6 << 20)
    let upload = try server.create("a.jpg", length: 20 << 20)
    #expect(try server.patch(upload, at: 0, bytes).status == 204)
    #expect(peer.uploads.count == 1 && !server.folder.kept.isEmpty)
    peer.change { $0.uploads = [:] }
    let next = pattern(8 << 20)
    let digest = [("Content-Digest", "sha-256=:\(base64(Digest.value(of: next, .sha256))):")]
    var head = [tus]
    if isTus {
      #expect(try server.patch(upload, at: bytes.count, next, hasDigest ? digest : []).status == 410)
    } else {
      head = [("Upload-Draft-Interop-Version", "8")]
      let more = [
        ("Upload-Complete", "?0"), ("Upload-Offset", "\(bytes.count)"), ("Content-Type", "application/partial-upload"),
      ]
      let answer = try server.ask("PATCH", upload, head + more + (hasDigest ? digest : []), body: next)
      #expect(answer.status == 410, "\(answer.status) \(answer.text)")
    }
    #expect(try server.ask("HEAD", upload, head).status == 410)
    #expect(try eventually { server.folder.kept.isEmpty }, "\(server.folder.kept)")
  }
}
