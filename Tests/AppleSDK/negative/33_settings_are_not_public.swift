// expect: cannot find 'BackgroundSettings' in scope
// target: arm64-apple-ios18.0
import BlobApple
func f() -> Any.Type { BackgroundSettings.self }
