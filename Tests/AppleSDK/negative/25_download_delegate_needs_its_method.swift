// expect: does not conform to protocol 'URLSessionDownloadDelegate'
import Foundation
final class D: NSObject, URLSessionDownloadDelegate {
  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloading location: URL) {}
}
