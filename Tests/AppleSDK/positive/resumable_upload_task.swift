// The code of docs/iphone.md, section "An app: URLSession".
import Foundation

final class Delegate: NSObject, URLSessionTaskDelegate {
  func begin(_ file: URL, _ token: String) {
    var request = URLRequest(url: URL(string: "https://photos.example.com:8443/phone/IMG_0001.HEIC")!)
    request.httpMethod = "PUT"
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    request.setValue("image/heic", forHTTPHeaderField: "Content-Type")
    let session = URLSession(
      configuration: .background(withIdentifier: "uploads"), delegate: self, delegateQueue: nil)
    let task = session.uploadTask(with: request, fromFile: file)
    task.resume()
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    if let data = (error as? URLError)?.uploadTaskResumeData { session.uploadTask(withResumeData: data).resume() }
  }
}
