// expect: main actor-isolated
// target: arm64-apple-ios18.0
import BlobApple
func f(_ uploader: BackgroundUploader) { uploader.handleEvents(identifier: "x") {} }
