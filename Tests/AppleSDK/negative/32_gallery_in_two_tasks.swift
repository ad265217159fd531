// expect: risks causing data races
// target: arm64-apple-ios18.0
import BlobApple
func f() throws {
  let gallery = try PhotoGallery(assets: ["A/L0/001"])
  Task.detached { _ = gallery.next() }
  _ = gallery.next()
}
