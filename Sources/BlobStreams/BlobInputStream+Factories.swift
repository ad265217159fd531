import Blobs
import Foundation

/// Streams for the usual cases.
extension BlobInputStream {
  /// For `URLRequest.httpBodyStream`: synchronous, and an error is neither an end nor silence (`reportsErrorsToURLLoading`
  /// is false). Its reads wait for the source; on Linux, so does every session, but see `carryStreamedBodies`.
  public static func forURLLoading(_ source: any BlobSource) -> BlobInputStream {
    BlobInputStream(StreamCore(source, .synchronous, block: defaultBlock, reportsErrors: false))
  }

  /// For multipart forms, whose makers open many streams on the main thread: as for URL loading, but `open` returns at
  /// once, and the opening, for which `read` waits, is done on `threads`.
  public static func forMultipart(_ source: any BlobSource, openingOn threads: StreamThreads = .opening)
    -> BlobInputStream
  {
    BlobInputStream(StreamCore(source, .opening(on: threads), block: defaultBlock, reportsErrors: false))
  }

  /// Over what `url` names. `.unsupported` where `resolver` knows no such kind of source.
  public static func forURL(
    _ url: URL, asynchronous: Bool = false, resolver: SourceResolver = .files
  ) throws(BlobError) -> BlobInputStream {
    BlobInputStream(try resolver.source(for: url.absoluteString), asynchronous: asynchronous)
  }

  /// Throws `.unsupported` for an asynchronous stream. Ask before a stream that comes from elsewhere becomes
  /// `httpBodyStream`: URL loading on Linux would take "nothing yet" for the end of the body, and send an empty one.
  public func checkForURLLoading() throws(BlobError) {
    if isAsynchronous {
      throw BlobError(.unsupported, "an asynchronous stream cannot be the body of a request: use forURLLoading")
    }
  }

  /// A fresh stream over the same source, in the same manner, that is not open and begins where this one did: for
  /// `needNewBodyStream` and redirects. Delegate, client and run loops are not taken over.
  public func reopened() -> BlobInputStream { BlobInputStream(core.afresh()) }

  static let defaultBlock = 128 << 10
}

extension BlobInputStream: NSCopying {
  /// As `reopened()`.
  public func copy(with zone: NSZone? = nil) -> Any { reopened() }
}
