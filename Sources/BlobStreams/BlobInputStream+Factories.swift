import Blobs
import Foundation

/// Initializers for common uses.
extension BlobInputStream {
  /// For `URLRequest.httpBodyStream`: synchronous, with `reportsErrorsToURLLoading` false, so that an error is taken
  /// neither for the end of the body nor for a stalled stream. Reads block until the source delivers; on Linux this
  /// blocks every session, but see `carryStreamedBodies`.
  public static func forURLLoading(_ source: any BlobSource) -> BlobInputStream {
    BlobInputStream(StreamCore(source, .synchronous, block: defaultBlock, reportsErrors: false))
  }

  /// For multipart forms, whose builders open many streams on the main thread. Like `forURLLoading`, but `open` returns
  /// at once: the source is opened on `threads`, and `read` waits for that.
  public static func forMultipart(_ source: any BlobSource, openingOn threads: StreamThreads = .opening)
    -> BlobInputStream
  {
    BlobInputStream(StreamCore(source, .opening(on: threads), block: defaultBlock, reportsErrors: false))
  }

  /// Creates a stream over the source that `url` names. Throws `.unsupported` if `resolver` does not know the scheme.
  public static func forURL(
    _ url: URL, asynchronous: Bool = false, resolver: SourceResolver = .files
  ) throws(BlobError) -> BlobInputStream {
    BlobInputStream(try resolver.source(for: url.absoluteString), asynchronous: asynchronous)
  }

  /// Throws `.unsupported` for an asynchronous stream. Call this before using a stream from elsewhere as
  /// `httpBodyStream`: URL loading on Linux would take a read that has no bytes yet for the end of the body, and would
  /// send an empty body.
  public func checkForURLLoading() throws(BlobError) {
    if isAsynchronous {
      throw BlobError(.unsupported, "an asynchronous stream cannot be the body of a request: use forURLLoading")
    }
  }

  /// Returns a new, unopened stream over the same source, in the same mode, that begins at the same offset: for
  /// `needNewBodyStream` and redirects. The delegate, client and run loops are not copied.
  public func reopened() -> BlobInputStream { BlobInputStream(core.afresh()) }

  /// Like `reopened()`, but begins `offset` bytes after that, for `needNewBodyStreamFrom`, by which URLSession resumes an
  /// upload. nil if `offset` is negative. If it is past the end, `read` fails.
  ///
  /// A stream that was reopened counts from where the first stream began, so any of them can be asked.
  public func reopened(from offset: Int64) -> BlobInputStream? {
    offset < 0 ? nil : BlobInputStream(core.afresh(skipping: offset))
  }

  static let defaultBlock = 128 << 10
}

extension BlobInputStream: NSCopying {
  /// Equivalent to `reopened()`.
  public func copy(with zone: NSZone? = nil) -> Any { reopened() }
}
