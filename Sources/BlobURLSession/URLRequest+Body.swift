import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLRequest {
  /// Makes `stream` the body, with exactly `length` bytes announced; nil: chunked.
  ///
  /// What the stream gives must be those bytes, or an error. Throws `.unsupported` for an asynchronous stream, and then
  /// nothing has changed. For length 0 the stream is not asked at all. On Linux, the session's configuration must have been
  /// told to `carryStreamedBodies()`, or every task of the process waits while the stream waits for its source. Redirects
  /// and challenges must not be left to URLSession there, which sends a spent stream again: see `StreamedUpload`.
  public mutating func setBody(_ stream: BlobInputStream, length: Int64?) throws(BlobError) {
    try stream.checkForURLLoading()
    httpBodyStream = length == 0 ? nil : stream
    setValue(length.map { String($0) }, forHTTPHeaderField: "Content-Length")
    #if canImport(FoundationNetworking)
      // corelibs announces chunks beside the length, which servers refuse, unless the field is there and blank.
      setValue(length ?? 0 == 0 ? nil : " ", forHTTPHeaderField: "Transfer-Encoding")
    #endif
  }
}

extension URLSessionConfiguration {
  /// Sessions of this configuration carry bodies that `setBody` set on threads of their own, so that none that is slow
  /// makes another task wait, and a connection that breaks in the head of an answer is an error.
  ///
  /// For Linux, where URLSession does it on one queue for the whole process and ends that process; elsewhere this changes
  /// nothing. A redirect is the answer of such a request, cookies in it are not kept, an answer of more than 1 MiB is an
  /// error, and suspending the task does not hold its body back. The delegate is told of the progress.
  public func carryStreamedBodies() {
    #if canImport(FoundationNetworking)
      protocolClasses = [StreamedBodyProtocol.self] + (protocolClasses ?? [])
    #endif
  }
}
