// expect: main actor-isolated instance method 'handleEvents
// target: arm64-apple-ios18.0
import BlobApple
func f(_ uploader: BackgroundUploader, _ handler: @escaping () -> Void) {
  uploader.handleEvents(identifier: "uploads", completionHandler: handler)
}
