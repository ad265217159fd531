import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Lists of parts and of uploads.
@Suite struct S3ListTests: S3Fixture {
  let transport = Self.lanes

  @Test(arguments: [true, false]) func listsAreReadPageByPage(_ isLikeCeph: Bool) async throws {
    let peer = peer { options in
      options.isLikeCeph = isLikeCeph
      options.page = 2
      options.smallestPart = 1
    }
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    let dialect = S3Multipart(
      bucketPath: "/media/", signer: signer, options: .init(wholeUpTo: 0, partSize: 100, smallestPart: 1))
    let context = UploadContext(transport: transport, origin: peer.endpoint.origin)
    var ids: Set<String> = []
    for name in ["in/100%41", "in/a b", "in/a b", "in/ä&+", "in/c", "out/d"] {
      let target = UploadTarget(
        endpoint: peer.endpoint, url: peer.endpoint.appending(pathBytes: Array(name.utf8)), path: BytePath(name),
        length: 450)
      guard case .parts(_, var session) = try await dialect.create(target, first: nil, context) else {
        throw CheckFailure("no upload was begun")
      }
      session.partSize = 100
      for part in PartPlan(length: 450, partSize: 100).numbered()! {
        let body = BlobSlice(PatternSource(length: 450), start: part.start, length: part.length)
        _ = try await dialect.send(part, body, to: session, context)
      }
      guard case .parts(let parts, _) = try await dialect.held(by: session, context) else {
        throw CheckFailure("no parts are listed")
      }
      #expect(parts.map(\.number) == [1, 2, 3, 4, 5] && parts.map(\.start) == [0, 100, 200, 300, 400])
      #expect(parts.map(\.held) == [100, 100, 100, 100, 50] && parts.allSatisfy { $0.digest != nil })
      ids.insert(session.state["id"]!)
    }
    let orphans = try await dialect.orphans(Array("in/".utf8), at: peer.endpoint, context)
    #expect(
      orphans.map { String(decoding: $0.key, as: UTF8.self) }.sorted() == [
        "in/100%41", "in/a b", "in/a b", "in/c", "in/ä&+",
      ])
    #expect(orphans.allSatisfy { $0.parts == 5 && $0.bytes == 450 && $0.begun == 1_795_302_000 })
    for orphan in orphans { try await dialect.delete(orphan, context) }
    #expect(peer.uploads.values.map(\.key) == ["out/d"])
  }
}
