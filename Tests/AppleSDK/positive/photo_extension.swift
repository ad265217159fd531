// Extensions of an app without users, whose token does not change, and the code of docs/iphone.md that switches one on and off.
import BlobApple
import BlobHTTP
import BlobUpload
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

  @available(iOS 26.1, *)
  func switchExtension(on isOn: Bool, onWiFiOnly: Bool, _ journal: Journal) async throws {
    let library = PHPhotoLibrary.shared()
    if #available(iOS 27.0, *) {
      let options = PHAssetResourceUploadJobOptions()
      options.preventsExpensiveNetworkAccess = onWiFiOnly
      if isOn { try library.enableUploadJobExtension(with: options) } else { try library.disableUploadJobExtension() }
    } else {
      try library.setUploadJobExtensionEnabled(isOn)
    }
    try await journal.jobs.forgetOpen()
  }
#endif
