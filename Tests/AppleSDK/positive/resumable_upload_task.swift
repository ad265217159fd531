// The code of docs/iphone.md, section "An app: URLSession".
import Foundation

final class Uploads: NSObject, URLSessionDataDelegate {
  private let file: URL
  private let request: URLRequest
  init(_ file: URL, token: String) {
    self.file = file
    var request = URLRequest(url: URL(string: "https://photos.example.com:8443/phone/IMG_0001.HEIC")!)
    request.httpMethod = "PUT"
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    request.setValue("image/heic", forHTTPHeaderField: "Content-Type")
    self.request = request
  }

  func begin() {
    let session = URLSession(configuration: .background(withIdentifier: "uploads"), delegate: self, delegateQueue: nil)
    session.uploadTask(with: request, fromFile: file).resume()  // a file: only such a task can be resumed
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
    if let error {  // also when the user has ended the app in the app switcher
      goOn(session, after: task, (error as? URLError)?.uploadTaskResumeData)
    } else if [200, 201, 204].contains(status) {
      sent()  // only now
    } else if [404, 408, 410, 429].contains(status) || status >= 500 && status != 507 {
      goOn(session, after: task, nil)
    } else {
      refused(status)  // 401: needs a new token; 409, 412: another file is there, or none; 413, 507: too large, no room
    }
  }

  /// `data` nil: nothing can be resumed, and the whole file is sent again.
  private func goOn(_ session: URLSession, after last: URLSessionTask, _ data: Data?) {
    let attempts = Int(last.taskDescription ?? "") ?? 0  // survives the app
    if attempts == 30 { return refused(0) }
    let next = data.map(session.uploadTask(withResumeData:)) ?? session.uploadTask(with: request, fromFile: file)
    next.taskDescription = "\(attempts + 1)"
    next.earliestBeginDate = Date(timeIntervalSinceNow: Double(1 << min(attempts, 12)))  // of background sessions only
    next.resume()
  }

  private func sent() {}
  private func refused(_ status: Int) {}
}
