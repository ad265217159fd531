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
  /// nothing has changed. For length 0 the stream is not asked at all. While the stream waits for its source, URLSession
  /// on Linux makes every other task of the process wait. Redirects and challenges must not be left to URLSession there,
  /// which sends a spent stream again: see `StreamedUpload`.
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
