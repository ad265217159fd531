import BlobApple
import BlobHTTP
import BlobURLSession
import BlobUpload
import Blobs
import Foundation
import Testing

/// What an app shows that does not know these types.
struct LocalizedErrorTests {
  @Test(
    arguments: [
      BlobError(.notFound, "open /film.mov: there is no such file"),
      TransportError(.connect, "PUT http://nas/: refused"),
      UploadError(.giveUp, .file, "PUT http://nas/film.mov: 409"), JournalError("open uploads.sqlite: disk full"),
      PhotoJobError(.limit, "create a job: there is no room"),
    ] as [any Error])
  func descriptionIsTheMessage(_ error: any Error) {
    #expect(error.localizedDescription == "\(error)")
    #expect((error as NSError).localizedDescription == "\(error)")
  }
}
