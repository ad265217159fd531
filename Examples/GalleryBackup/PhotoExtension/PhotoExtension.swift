import BlobApple
import BlobHTTP
import Blobs
import ExtensionFoundation
import Foundation
import Photos

/// The user who is signed in, with a token, read together at each call; nil: nobody is. An app reads both from one item of the
/// keychain that it shares with the extension. The extension runs while the phone is locked, so the item needs
/// `kSecAttrAccessibleAfterFirstUnlock`.
nonisolated func session() -> PhotoJobSession? {
  PhotoJobSession(account: "4711", headers: ["Authorization": "Bearer 0123456789abcdef"])
}

/// The folder is below `BackgroundUploadURLBase` of the Info.plist. An app that lists what was given up has the journal in the
/// folder of its app group.
nonisolated let uploads = PhotoUploads(
  to: PhotoJobDestination(HTTPURL("https://photos.example.com:8443/phone/")!, session: session),
  journal: BytePath(NSHomeDirectory() + "/Library/Application Support/photos.sqlite"))

/// Apple's background uploader sends the photos, also while the app does not run. The system calls this target on threads of
/// its own.
@available(iOS 27.0, *)
nonisolated final class PhotoExtension: PHBackgroundResourceUploadJobExtension {
  func processJobs() async -> PHBackgroundResourceUploadProcessingResult { await uploads.process() }
  func willTerminate() async { uploads.terminate() }
}

@available(iOS, introduced: 26.1, deprecated: 27.0)
nonisolated final class EarlierPhotoExtension: PHBackgroundResourceUploadExtension {
  func process() -> PHBackgroundResourceUploadProcessingResult { uploads.processAndWait() }
  func notifyTermination() { uploads.terminate() }
}

@main
nonisolated enum Main {
  static func main() throws {
    if #available(iOS 27.0, *) { try PhotoExtension.main() } else { try EarlierPhotoExtension.main() }
  }
}
