import BlobApple
import ExtensionFoundation
import Photos

/// Apple's background uploader sends the photos, also while the app does not run. This is a target of its own.
@main
nonisolated enum Main {
  static func main() throws {
    if #available(iOS 27.0, *) { try PhotoExtension.main() } else { try EarlierPhotoExtension.main() }
  }
}

/// The system calls it on threads of its own.
@available(iOS 27.0, *)
nonisolated final class PhotoExtension: PHBackgroundResourceUploadJobExtension {
  private let run = Run()

  func processJobs() async -> PHBackgroundResourceUploadProcessingResult {
    guard let session = Session.current else { return .completed }
    guard let uploads = run.begin(session) else { return .processing }
    defer { run.end() }
    return await uploads.process()
  }

  func willTerminate() async { run.terminate() }
}

@available(iOS, introduced: 26.1, deprecated: 27.0)
nonisolated final class EarlierPhotoExtension: PHBackgroundResourceUploadExtension {
  private let run = Run()

  func process() -> PHBackgroundResourceUploadProcessingResult {
    guard let session = Session.current else { return .completed }
    guard let uploads = run.begin(session) else { return .processing }
    defer { run.end() }
    return uploads.processAndWait()
  }

  func notifyTermination() { run.terminate() }
}
