/// A source whose bytes pass through a rate limiter, which other sources may share.
public struct ThrottledSource: BlobSource {
  private let source: any BlobSource
  private let grant: RateGrant

  /// Makes readers of a source wait for the limiter. Waiting blocks the reading thread, and can be cancelled.
  public init(_ source: any BlobSource, _ limiter: RateLimiter) {
    self.init(source, RateGrant(limiter))
  }

  /// Reads use what `grant` has granted, and wait for its limiter if that is nothing. One reader at a time.
  package init(_ source: any BlobSource, _ grant: RateGrant) {
    (self.source, self.grant) = (source, grant)
  }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// The reader waits in `read`; `cancel` ends that wait.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    ThrottledReader(try source.open(at: offset, cancel), grant, cancel)
  }
}

private final class ThrottledReader: BlobReader {
  private let reader: any BlobReader
  private let grant: RateGrant
  private let cancel: Cancellation

  init(_ reader: any BlobReader, _ grant: RateGrant, _ cancel: Cancellation) {
    self.reader = reader
    self.grant = grant
    self.cancel = cancel
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let granted = try grant.take(upTo: buffer.count, cancel)
    var used = 0
    defer { if used < granted { grant.giveBack(granted - used) } }
    used = try reader.readChecked(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(granted)))
    return used
  }

  // Bytes sent from a file region would bypass the limiter.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
