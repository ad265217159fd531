import BlobHTTP
import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension MultipartForm {
  /// Any of Foundation's input streams; nobody else may read it.
  ///
  /// `length` is what the stream gives: fewer bytes are `.truncated`, more are `.changed`; nil sends the form chunked. A
  /// stream can be read but once: a form that has to be sent again, for a redirect or a challenge, then fails. One over
  /// a source (`BlobInputStream`) is better given as that source.
  public mutating func appendPart(
    withInputStream stream: sending InputStream, name: String, fileName: String? = nil, length: Int64? = nil,
    mimeType: String? = nil
  ) {
    let source = StreamSource(stream, length: length)
    appendPart(source, name: name, fileName: fileName, mimeType: mimeType)
  }

  /// A stream over the body, for `URLRequest.httpBodyStream` and whatever else takes one; a fresh one for each call.
  ///
  /// Its `open` returns at once, and its errors are neither ends nor silence.
  public func bodyStream() -> BlobInputStream { .forMultipart(self) }

  /// A request with the boundary and no body: for `StreamedUpload(form).send(request)`, which announces the length.
  public func urlRequest(to url: URL, method: String = "POST") -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.setValue(contentType, forHTTPHeaderField: "Content-Type")
    return request
  }
}

extension URLRequest {
  /// Makes `form` the body, with its boundary, and its exact length where every part's is known. Asks the parts: blocks.
  public mutating func setBody(_ form: MultipartForm) throws(BlobError) {
    let length = try form.info(Cancellation()).length
    try setBody(form.bodyStream(), length: length)
    setValue(form.contentType, forHTTPHeaderField: "Content-Type")
  }
}

extension PreparedForm {
  /// For `URLSession.uploadTask(with:fromFile:)`.
  public var fileURL: URL { URL(fileURLWithPath: path.description) }

  /// A stream over the body; a fresh one for each call.
  public func bodyStream() -> BlobInputStream { .forURLLoading(FileSource(path)) }

  /// A request with boundary and length, and no body: the file is that.
  public func urlRequest(to url: URL, method: String = "POST") -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.setValue(contentType, forHTTPHeaderField: "Content-Type")
    request.setValue(String(length), forHTTPHeaderField: "Content-Length")
    return request
  }
}
