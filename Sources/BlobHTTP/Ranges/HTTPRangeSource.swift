import Blobs

/// The resource at an http(s) URL, read as needed and not stored, so that data flows from a server to a destination
/// without a disk.
///
/// If the server supports ranges and identifies the version (by a strong `ETag`, or by a `Last-Modified` that is old
/// enough), the source can be opened at any offset. After a broken connection it requests the rest on condition that
/// the version is unchanged, so that two versions are never mixed. Otherwise the resource is read once, from the first
/// byte to the last. A broken connection is then `.invalidated`: `info` starts a new download of the current version,
/// and only its byte 0 can be opened. The read-ahead buffer is bounded. RFC 9110 §13.1.4, §13.1.5, §14.
///
/// Each reader has one exchange of `transport` open until `finish()`, and never more than one. Do not use the transport
/// that sends the data elsewhere: reader and sender could wait for each other's workers forever.
public struct HTTPRangeSource: BlobSource {
  /// The URL that the source was created with. Redirects do not change it.
  public let url: HTTPURL
  let remote: RemoteFile
  /// Default number of consecutive attempts that transfer almost nothing before an error is thrown.
  public static let usualRetries = 5

  /// Creates a source without contacting the server.
  /// - `headers`: credentials and similar fields, sent to the origin of `url` but not to other origins after a
  ///   redirect.
  /// - `retries`: number of consecutive attempts with fewer than 16 KiB in total, after which a broken connection is an
  ///   error.
  /// - `readAhead`: capacity of the read-ahead buffer in bytes.
  /// - `notice`: called on the reading thread when a download over plain HTTP without a length was ended by the end of
  ///   the connection, so that it may be incomplete.
  public init(
    _ url: HTTPURL, over transport: any Transport, headers: HTTPHeaders = [:], retries: Int = Self.usualRetries,
    readAhead: Int = 512 << 10, notice: (@Sendable (String) -> Void)? = nil
  ) {
    precondition(retries >= 0 && readAhead > 0)
    self.url = url
    remote = RemoteFile(RemoteRequest(url, transport, headers), readAhead: readAhead, notice: notice) {
      FixedRetries(retries)
    }
  }

  /// Like the other one, for a file that is read to be stored here: its `BlobInfo` has the time at which the file was last
  /// modified. `failures`: called for each reader.
  package init(
    timedAt url: HTTPURL, over transport: any Transport, headers: HTTPHeaders,
    failures: @escaping @Sendable () -> any ReadFailures
  ) {
    self.url = url
    remote = RemoteFile(
      RemoteRequest(url, transport, headers), readAhead: 512 << 10, tellsTimes: true, failures: failures)
  }

  /// `.random` until `info` or `open` has found out otherwise.
  public var access: BlobAccess { remote.isOnceOnly ? .sequential : .random }

  /// Requests one byte, or returns the facts of a download that was already begun and can be read only once.
  /// `.notFound`, `.permission` and `.io` reflect the server's status; `.io` also means that there was no response.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at \(url)")
    return try remote.facts(cancel).info(tellingTimes: remote.tellsTimes)
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open \(url)")
    return try remote.open(at: offset, cancel)
  }
}

extension SourceResolver {
  /// Adds `http:` and `https:` URLs, read over `transport`. For `retries` and `notice` see `HTTPRangeSource`.
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
