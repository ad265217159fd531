// expect: call can throw
// target: arm64-apple-ios27.0
import Photos
func f() { PHPhotoLibrary.shared().disableUploadJobExtension() }
