import BlobHTTP
import BlobStreams
import BlobURLSession
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The body of an `NSURLRequest`, which `pos_inputStreamForCFNetworkWithAssetURL:` was made for. It begins at byte
/// `offset`, as with `NSStreamFileCurrentOffsetKey`. A session asks its delegate for it on a thread of its own.
nonisolated func body(of photo: any BlobSource, from offset: Int64) -> BlobInputStream? {
  let stream = BlobInputStream.forURLLoading(photo)
  return stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey) ? stream : nil
}

/// A request with this body. How the server is told the offset is up to its protocol. The session needs a `BodyDelegate`
/// with the same offset.
func request(with photo: any BlobSource, from offset: Int64 = 0, to url: URL) throws -> URLRequest {
  var request = URLRequest(url: url)
  request.httpMethod = "PUT"
  // The length of a photo is nil, and such a body is sent in chunks.
  let length = try photo.info(Cancellation()).length
  guard let body = body(of: photo, from: offset), offset <= length ?? offset else {
    throw BlobError(.outOfRange, "a body cannot begin at byte \(offset)")
  }
  // Sets `httpBodyStream` and `Content-Length`, which is the number of bytes from the offset on.
  try request.setBody(body, length: length.map { $0 - offset })
  return request
}

/// Writes a photo to a new file, which has a length. It blocks.
func write(_ photo: any BlobSource, to file: URL) throws {
  let reader = try photo.open(at: 0, Cancellation())
  guard let output = OutputStream(url: file, append: false) else { throw BlobError(.io, "open \(file)") }
  output.open()
  defer { output.close() }
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  while true {
    let count = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
    // A stream may write less than it is given.
    var written = 0
    while written < count {
      let step = bytes[written..<count].withUnsafeBufferPointer {
        output.write($0.baseAddress!, maxLength: $0.count)
      }
      if step <= 0 { throw output.streamError ?? BlobError(.io, "write \(file)") }
      written += step
    }
    if count == 0 { return try reader.finish() }
  }
}

/// An upload to a server that refuses bodies without `Content-Length`. URLSession sets it from the file.
func upload(_ file: URL, to url: URL, in session: URLSession) -> URLSessionUploadTask {
  var request = URLRequest(url: url)
  request.httpMethod = "PUT"
  return session.uploadTask(with: request, fromFile: file)
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

/// The delegate of a session that sends such a body. `offset` is the byte at which the body began: without it, a body that
/// is sent again would have the wrong bytes.
final class BodyDelegate: NSObject, URLSessionTaskDelegate {
  private let photo: any BlobSource
  private let offset: Int64

  init(_ photo: any BlobSource, from offset: Int64 = 0) {
    self.photo = photo
    self.offset = offset
  }

  // After a redirect or a challenge, the body is sent again.
  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(body(of: photo, from: offset))
  }

  // An upload task that URLSession resumes needs the rest. It counts from the first byte of the body.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom sent: Int64,
    completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(body(of: photo, from: offset)?.reopened(from: sent))
  }
}
