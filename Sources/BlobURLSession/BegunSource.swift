import Blobs
import Foundation

/// A source that is opened, and its first bytes read, before a request is made. The first reader goes on with them.
///
/// The first byte may take minutes, for example while a photo is downloaded, and URLSession ends a request of which nothing
/// moves for 60 s.
final class BegunSource: BlobSource, @unchecked Sendable {
  /// How often the source is opened again when it throws `.invalidated` before its first byte.
  private static let mostRetries = 3
  /// After this time it is not opened again, so that the uploader can say that it waits.
  private let patience: Duration
  /// The bytes to read ahead. A source may keep this many for a reader that begins anew: see `DeliveredSource`.
  private static let ahead = 16 << 10

  private let source: any BlobSource
  // `lock` guards the following variable. The reader in it is used by one thread after another.
  private let lock = NSLock()
  private var begun: BegunReader?

  init(_ source: any BlobSource, patience: Duration = ReopeningSource.usualPatience) {
    self.source = source
    self.patience = patience
  }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// Opens the source at its first byte, and waits for that byte. A sequential source is only opened: what is read of
  /// it would be lost if the request could not be sent. This call blocks.
  func begin(_ cancel: Cancellation) throws(BlobError) {
    var retries = 0
    let end = ContinuousClock.now + patience
    while true {
      do throws(BlobError) {
        let reader = try BegunReader(source, cancel)
        if access == .random { try reader.readAhead(Self.ahead) }
        return lock.withLock { begun = reader }
      } catch  where error.code == .invalidated && retries < Self.mostRetries && .now < end {
        retries += 1
      }
    }
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let begun = takeBegun()
    guard offset == 0, let begun else { return try source.open(at: offset, cancel) }
    begun.cancel = cancel
    return begun
  }

  func closeUntilNeeded() {
    releaseBegun()
    source.closeUntilNeeded()
  }

  /// Releases the reader of `begin` if nobody has taken it.
  func releaseBegun() { _ = takeBegun() }

  private func takeBegun() -> BegunReader? {
    lock.withLock {
      defer { begun = nil }
      return begun
    }
  }
}

private final class BegunReader: BlobReader {
  private let reader: any BlobReader
  /// Cancels the calls of `reader`, which was opened before its user was known.
  private let stop: Cancellation
  var cancel: Cancellation
  private var block = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// The bytes in `block` that were not returned yet.
  private var ahead = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The source has ended behind the bytes that were read ahead.
  private var hasEnded = false

  init(_ source: any BlobSource, _ cancel: Cancellation) throws(BlobError) {
    let stop = Cancellation()
    reader = try cancel.whileWaiting(wakeUp: { stop.cancel() }) { () throws(BlobError) in
      try source.open(at: 0, stop)
    }
    (self.stop, self.cancel) = (stop, cancel)
  }

  var info: BlobInfo { reader.info }

  deinit { block.deallocate() }

  func readAhead(_ count: Int) throws(BlobError) {
    // A source that prefers large reads would read one block twice otherwise.
    block = .allocate(byteCount: max(count, reader.info.preferredRead), alignment: 16)
    let count = try readSource(into: block)
    ahead = UnsafeRawBufferPointer(rebasing: block.prefix(count))
    hasEnded = count == 0
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if hasEnded { return 0 }
    if ahead.isEmpty { return try readSource(into: buffer) }
    let count = min(buffer.count, ahead.count)
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: ahead.prefix(count)))
    ahead = UnsafeRawBufferPointer(rebasing: ahead.dropFirst(count))
    return count
  }

  private func readSource(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    try whileWaiting { () throws(BlobError) in try reader.readChecked(into: buffer) }
  }

  private func whileWaiting<Result>(_ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    try cancel.whileWaiting(wakeUp: { [stop] in stop.cancel() }, body)
  }

  /// Bytes of the region may have been read ahead.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try whileWaiting { () throws(BlobError) in try reader.finish() } }
}
