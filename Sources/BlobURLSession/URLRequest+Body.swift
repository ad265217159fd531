import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLRequest {
  /// Sets `stream` as the body with a `Content-Length` of `length`; nil sends it chunked.
  ///
  /// The stream must yield exactly `length` bytes, or an error. Throws `.unsupported` for an asynchronous stream, and
  /// then leaves the request unchanged. For length 0 the stream is not used. On Linux, call `carryStreamedBodies()` on
  /// the session's configuration; otherwise all tasks of the process wait while the stream waits for its source. On
  /// Linux URLSession must not handle redirects and challenges either, because it sends a consumed stream again: see
  /// `StreamedUpload`.
  public mutating func setBody(_ stream: BlobInputStream, length: Int64?) throws(BlobError) {
    try stream.checkForURLLoading()
    httpBodyStream = length == 0 ? nil : stream
    setValue(length.map { String($0) }, forHTTPHeaderField: "Content-Length")
    #if canImport(FoundationNetworking)
      // corelibs adds `Transfer-Encoding: chunked` beside the length, which servers refuse, unless the field is set to
      // a blank.
      setValue(length ?? 0 == 0 ? nil : " ", forHTTPHeaderField: "Transfer-Encoding")
    #endif
  }
}

extension URLSessionConfiguration {
  /// Makes sessions of this configuration send bodies from `setBody` on their own threads, so that a slow body does not
  /// delay other tasks, and a connection that breaks within the head of a response is an error.
  ///
  /// This is for Linux, where URLSession reads bodies on one queue for the whole process and terminates the process in
  /// the second case; elsewhere it changes nothing. For such requests a redirect is returned as the response, its
  /// cookies are not stored, and a response of more than 1 MiB is an error. Suspending the task does not stop its body.
  /// The delegate receives progress.
  public func carryStreamedBodies() {
    #if canImport(FoundationNetworking)
      protocolClasses = [StreamedBodyProtocol.self] + (protocolClasses ?? [])
    #endif
  }
}
