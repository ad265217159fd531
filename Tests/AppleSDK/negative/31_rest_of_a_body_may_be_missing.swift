// expect: must be unwrapped
// target: arm64-apple-ios18.0
import BlobStreams
func rest(of stream: BlobInputStream) -> BlobInputStream { stream.reopened(from: 1000) }
