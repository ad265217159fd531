// expect: only available in iOS 26.1
// target: arm64-apple-ios18.0
import Photos
func f() -> Int { PHAssetResourceUploadJob.jobLimit }
