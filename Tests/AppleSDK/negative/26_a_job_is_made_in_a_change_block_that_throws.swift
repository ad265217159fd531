// expect: call can throw
// target: arm64-apple-ios26.4
import Photos
func f() { PHPhotoLibrary.shared().performChangesAndWait {} }
