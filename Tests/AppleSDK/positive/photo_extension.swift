// Extensions of an app without users, whose token does not change.
import BlobApple
import BlobHTTP
import Blobs
import ExtensionFoundation
import Photos

private let destination = PhotoJobDestination(HTTPURL("https://photos.example.com/phone/")!) {
  ["Authorization": "Bearer \(token())"]
}
nonisolated private func token() -> String { "…" }
private let journal: BytePath = "/path/of/the/app/group/uploads.sqlite"

@available(iOS 27.0, macOS 27.0, *)
final class PhotoExtension: PHBackgroundResourceUploadJobExtension {
  private let uploads = PhotoUploads(to: destination, journal: journal)
  required init() {}
  func processJobs() async -> PHBackgroundResourceUploadProcessingResult { await uploads.process() }
  func willTerminate() async { uploads.terminate() }
}

#if os(iOS)
  @available(iOS, introduced: 26.1, deprecated: 27.0)
  final class EarlierPhotoExtension: PHBackgroundResourceUploadExtension {
    private let uploads = PhotoUploads(to: destination, journal: journal)
    required init() {}
    func process() -> PHBackgroundResourceUploadProcessingResult { uploads.processAndWait() }
    func notifyTermination() { uploads.terminate() }
  }
#endif
