// expect: does not conform to protocol 'PHBackgroundResourceUploadExtension'
// target: arm64-apple-ios26.1
import ExtensionFoundation
import Photos
final class E: PHBackgroundResourceUploadExtension {
  init() {}
  func process() async -> PHBackgroundResourceUploadProcessingResult { .completed }
  func notifyTermination() {}
}
