import BlobHTTP
import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension MultipartForm {
  /// Appends a Foundation input stream, which must not be read elsewhere.
  ///
  /// - `length`: bytes that the stream yields. Fewer are `.truncated`, more are `.changed`; nil sends the form chunked.
  ///
  /// A stream can be read only once, so sending the form again after a redirect or an authentication challenge fails.
  /// For a `BlobInputStream`, append its source instead.
  public mutating func appendPart(
    withInputStream stream: sending InputStream, name: String, fileName: String? = nil, length: Int64? = nil,
    mimeType: String? = nil
  ) {
    let source = StreamSource(stream, length: length)
    appendPart(source, name: name, fileName: fileName, mimeType: mimeType)
  }

  /// A new stream over the body, for `URLRequest.httpBodyStream` and other APIs that take a stream.
  ///
  /// Its `open` returns at once. Errors are reported as stream errors, not as the end of the stream or a stall.
  public func bodyStream() -> BlobInputStream { .forMultipart(self) }

  /// A request with the boundary and without a body, for `StreamedUpload(form).send(request)`, which adds the length.
  public func urlRequest(to url: URL, method: String = "POST") -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.setValue(contentType, forHTTPHeaderField: "Content-Type")
    return request
  }
}

extension URLRequest {
  /// Sets `form` as the body, with its boundary, and with the exact length if every part's is known. Calls `info` of
  /// the parts, which blocks.
  public mutating func setBody(_ form: MultipartForm) throws(BlobError) {
    let length = try form.info(Cancellation()).length
    try setBody(form.bodyStream(), length: length)
    setValue(form.contentType, forHTTPHeaderField: "Content-Type")
  }
}

extension PreparedForm {
  /// The file's URL, for `URLSession.uploadTask(with:fromFile:)`.
  public var fileURL: URL { URL(fileURLWithPath: path.description) }

  /// A new stream over the body.
  public func bodyStream() -> BlobInputStream { .forURLLoading(FileSource(path)) }

  /// A request with boundary and length. It has no body, because the file is uploaded separately.
  public func urlRequest(to url: URL, method: String = "POST") -> URLRequest {
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.setValue(contentType, forHTTPHeaderField: "Content-Type")
    request.setValue(String(length), forHTTPHeaderField: "Content-Length")
    return request
  }
}
