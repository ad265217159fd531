// expect: has different argument labels from those required by protocol
import Foundation
final class D: NSObject, URLSessionDownloadDelegate {
  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloading location: URL) {}
}
