import BlobApple
import BlobHTTP
import Blobs
import ExtensionFoundation
import Foundation
import Photos

/// Apple's background uploader sends the photos, also while the app does not run. This is a target of its own.
@main
final class PhotoExtension: PHBackgroundResourceUploadJobExtension {
  private let uploads = PhotoUploads(
    to: PhotoJobDestination(HTTPURL("https://photos.example/phone/")!),
    journal: BytePath(NSHomeDirectory() + "/Library/Application Support/photos.sqlite"))

  func processJobs() async -> PHBackgroundResourceUploadProcessingResult { await uploads.process() }
  func willTerminate() async { uploads.terminate() }
}
