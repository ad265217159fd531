// expect: 'process' is only available in iOS 26.5
// target: arm64-apple-ios26.1
import Photos
func f() -> Int { PHAssetResourceUploadJob.fetchJobs(action: .process, options: nil).count }
