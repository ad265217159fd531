import Blobs

/// What is at an http(s) URL, read as it is wanted and never kept: from a server to a destination without a disk.
///
/// Where the server gives ranges and names the version (a strong `ETag`, or a `Last-Modified` that is old enough to be
/// one), any byte can be opened, and a connection that is cut is made up for: the rest is asked for on the condition that
/// there is still this version, so that two versions are never mixed. Elsewhere it is read once, from the first byte to the
/// last. A cut is `.invalidated` then: `info` begins a new download, of the version that is there by then, and only its byte 0
/// can be opened. What is read ahead of its use is bounded. RFC 9110 §13.1.4, §13.1.5, §14.
///
/// Each reader holds one exchange of `transport` until `finish()`, and never more than one: give it a transport of its own, not the one
/// that sends on what is read here, or the two could wait for each other's workers.
public struct HTTPRangeSource: BlobSource {
  public let url: HTTPURL
  let remote: RemoteFile
  /// Attempts in a row that bring next to nothing, unless another number is asked for.
  public static let usualRetries = 5

  /// - `headers`: credentials and the like; they go to the origin of `url` and to none that it redirects to.
  /// - `retries`: attempts in a row that bring fewer than 16 KiB together, after which a cut is an error.
  /// - `readAhead`: bytes that may wait for their use.
  /// - `notice`: hears that a download has ended of which nobody can know whether it is whole: over plain HTTP, without a
  ///   length, ended by the end of the connection. Called on the thread that reads.
  public init(
    _ url: HTTPURL, over transport: any Transport, headers: HTTPHeaders = [:], retries: Int = Self.usualRetries,
    readAhead: Int = 512 << 10, notice: (@Sendable (String) -> Void)? = nil
  ) {
    precondition(retries >= 0 && readAhead > 0)
    self.url = url
    remote = RemoteFile(
      RemoteAsk(url, transport, headers), retries: retries, readAhead: readAhead, notice: notice)
  }

  /// Taken for random until `info` or `open` has found out.
  public var access: BlobAccess { remote.isOnceOnly ? .sequential : .random }

  /// Asks the server for one byte, or what it gave when it was begun to be read once.
  /// `.notFound`, `.permission` and `.io` are the server's answers; the last also stands for no answer.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at \(url)")
    return try remote.facts(cancel).info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open \(url)")
    return try remote.open(at: offset, cancel)
  }
}

extension SourceResolver {
  /// This one, and `http:` and `https:` URLs, read over `transport`. `retries` and `notice`: as in `HTTPRangeSource`.
  public func addingHTTP(
    over transport: any Transport, headers: HTTPHeaders = [:], retries: Int = HTTPRangeSource.usualRetries,
    notice: (@Sendable (String) -> Void)? = nil
  ) -> SourceResolver {
    let maker: Maker = { text throws(BlobError) in
      guard let url = HTTPURL(text) else { throw BlobError(.unsupported, "this is no usable http(s) URL") }
      return HTTPRangeSource(url, over: transport, headers: headers, retries: retries, notice: notice)
    }
    return adding("http", maker).adding("https", maker)
  }
}
