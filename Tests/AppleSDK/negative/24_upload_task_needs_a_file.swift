// expect: incorrect argument label
import Foundation
func f(_ session: URLSession, _ request: URLRequest, _ data: Data) -> URLSessionUploadTask {
  session.uploadTask(with: request, fromData: data)
}
