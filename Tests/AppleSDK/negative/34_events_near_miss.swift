// expect: nearly matches optional requirement
// target: arm64-apple-ios18.0
import UIKit
final class D: NSObject, UIApplicationDelegate {
  func application(
    _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    completionHandler: @escaping (Bool) -> Void
  ) {}
}
