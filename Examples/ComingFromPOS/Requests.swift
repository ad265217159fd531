import BlobHTTP
import BlobStreams
import BlobURLSession
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The body of an `NSURLRequest`, which `pos_inputStreamForCFNetworkWithAssetURL:` was made for.
func request(with photo: any BlobSource, to url: URL) throws -> URLRequest {
  var request = URLRequest(url: url)
  request.httpMethod = "PUT"
  // Sets `httpBodyStream` and `Content-Length`. The length of a photo is nil, and such a body is sent in chunks.
  let length = try photo.info(Cancellation()).length
  try request.setBody(.forURLLoading(photo), length: length)
  return request
}

/// A form, which `pos_inputStreamForAFNetworkingWithAssetURL:` was made for.
func form(with photo: any BlobSource, to url: URL) throws -> URLRequest {
  var form = MultipartForm()
  form.appendPart(photo, name: "file", fileName: "IMG_0001.JPG", mimeType: "image/jpeg")
  var request = URLRequest(url: url)
  request.httpMethod = "POST"
  try request.setBody(form)
  return request
}

/// The delegate of a session whose requests have such bodies.
final class BodyDelegate: NSObject, URLSessionTaskDelegate {
  private let photo: any BlobSource

  init(_ photo: any BlobSource) { self.photo = photo }

  // After a redirect or a challenge, the body is sent again.
  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(BlobInputStream.forURLLoading(photo))
  }

  // An upload task that URLSession resumes needs the rest.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
    completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(BlobInputStream.forURLLoading(photo).reopened(from: offset))
  }
}
