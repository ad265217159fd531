// expect: must be unwrapped
// target: arm64-apple-ios26.1
import Foundation
import Photos
func f(_ job: PHAssetResourceUploadJob) -> URL? { job.destination.url }
