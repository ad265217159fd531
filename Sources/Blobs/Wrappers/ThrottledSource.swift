/// A source whose bytes pass through a rate limiter, which other sources may share.
public struct ThrottledSource: BlobSource {
  private let source: any BlobSource
  private let limiter: RateLimiter
  /// nil: every read waits for the limiter itself.
  private let grant: RateGrant?

  /// Makes readers of a source wait for the limiter. Waiting blocks the reading thread, and can be cancelled.
  public init(_ source: any BlobSource, _ limiter: RateLimiter) {
    (self.source, self.limiter, grant) = (source, limiter, nil)
  }

  /// Reads use what `grant` has granted, and wait for its limiter if that is nothing. One reader at a time.
  package init(_ source: any BlobSource, _ grant: RateGrant) {
    (self.source, limiter, self.grant) = (source, grant.limiter, grant)
  }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// The reader waits in `read`; `cancel` ends that wait.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    ThrottledReader(try source.open(at: offset, cancel), limiter, grant, cancel)
  }
}

private final class ThrottledReader: BlobReader {
  private let reader: any BlobReader
  private let limiter: RateLimiter
  private let grant: RateGrant?
  private let cancel: Cancellation

  init(_ reader: any BlobReader, _ limiter: RateLimiter, _ grant: RateGrant?, _ cancel: Cancellation) {
    self.reader = reader
    self.limiter = limiter
    self.grant = grant
    self.cancel = cancel
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let ahead = grant?.take(upTo: buffer.count)
    let granted = if let ahead { ahead } else { try limiter.take(upTo: buffer.count, cancel) }
    var used = 0
    defer { if used < granted { limiter.giveBack(granted - used) } }
    used = try reader.readChecked(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(granted)))
    return used
  }

  // Bytes sent from a file region would bypass the limiter.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
