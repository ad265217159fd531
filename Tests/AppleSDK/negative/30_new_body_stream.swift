// expect: nearly matches optional requirement
// target: arm64-apple-ios18.0
import Foundation
final class D: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int,
    completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {}
}
