import BlobMedia
import Blobs
import Testing

struct ContentTypeTests {
  @Test(
    arguments: [
      ("a.jpg", "image/jpeg"), ("IMG_1.HEIC", "image/heic"), ("x/y.MOV", "video/quicktime"),
      ("a.tar.gz", "application/gzip"),
      ("a.dng", "image/x-adobe-dng"), ("noextension", "application/octet-stream"), (".jpg", "application/octet-stream"),
      ("a.", "application/octet-stream"), ("dir.jpg/file", "application/octet-stream"),
      ("", "application/octet-stream"),
    ] as [(BytePath, String)])
  func theExtensionTellsTheType(_ path: BytePath, _ type: String) {
    #expect(ContentType.of(path) == type)
  }
}
