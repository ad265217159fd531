import Blobs
import Testing

@testable import BlobUpload

struct TusMetadataTests {
  /// tus 1.0 §Upload-Metadata: keys without spaces and commas, values in Base64.
  @Test func theMetadataOfAFileIsSent() {
    var target = UploadTarget(endpoint: host, url: host, path: "in/a b.jpg", length: 1, contentType: "image/jpeg")
    target.metadata = ["kind": "photo", "pair": "IMG ä.MOV"]
    let words = [
      ("filename", "a b.jpg"), ("relativePath", "in/a b.jpg"), ("filetype", "image/jpeg"), ("kind", "photo"),
      ("pair", "IMG ä.MOV"),
    ]
    #expect(TusMetadata.value(of: target) == words.map { "\($0.0) \(base64($0.1.utf8))" }.joined(separator: ","))
  }
}
