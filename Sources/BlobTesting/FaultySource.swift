import Blobs
import Synchronization

/// A source with configured faults. It also counts calls.
public struct FaultySource: BlobSource {
  /// How the source fails. Offsets and lengths are in bytes.
  public enum Fault: Sendable {
    /// No read returns more than this many bytes.
    case shortReads(Int)
    /// Reading at this byte throws, for the first `times` attempts.
    case fail(at: Int64, BlobError, times: Int = .max)
    /// Reading at this byte throws `.invalidated`, for the first `times` attempts.
    case invalidate(at: Int64, times: Int)
    /// Opening throws, `times` times, starting with the `from`th call (counted from 1).
    case failOpening(BlobError, from: Int = 1, times: Int = .max)
    /// From the `from`th opening on, the source is replaced by another one with other bytes and another validator.
    case replaced(by: any BlobSource, from: Int)
    /// Reading at this byte blocks until it is cancelled.
    case stall(at: Int64)
    /// Opening blocks until it is cancelled.
    case stallOpening
    /// Reading ends at this byte, whatever the length is.
    case truncate(at: Int64)
    /// `finish` throws `.changed`.
    case changedAtEnd
  }

  private let source: any BlobSource
  private let faults: [Fault]
  private let record: Record

  /// Wraps a source. All faults apply together, and all copies of this value share one count of calls.
  public init(_ source: any BlobSource, _ faults: Fault...) {
    self.source = source
    self.faults = faults
    record = Record(faults.count)
  }

  /// Calls of `open`, including failed ones.
  public var openings: Int { record.counts.withLock { $0.openings } }
  /// Calls of `read` by all readers.
  public var reads: Int { record.counts.withLock { $0.reads } }
  /// The size of the smallest buffer passed to `read`; nil before the first call.
  public var smallestRead: Int? { record.counts.withLock { $0.smallestRead } }

  public var access: BlobAccess { source.access }

  /// The info of the source that the next opening would open.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try current(opening: openings + 1).info(cancel)
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let opening = record.counts.withLock { counts in
      counts.openings += 1
      return counts.openings
    }
    for (number, fault) in faults.enumerated() {
      if case .stallOpening = fault { try stall(cancel, "open") }
      if case .failOpening(let error, let from, let times) = fault, opening >= from, record.isDue(number, times) {
        throw error
      }
    }
    let reader = try current(opening: opening).open(at: offset, cancel)
    return FaultyReader(reader, faults, record, at: offset, cancel)
  }

  private func current(opening: Int) -> any BlobSource {
    var current = source
    for case .replaced(let other, let from) in faults where opening >= from { current = other }
    return current
  }

  fileprivate final class Record: Sendable {
    struct Counts {
      var openings = 0
      var reads = 0
      var smallestRead: Int?
      /// How often each fault occurred.
      var struck: [Int]
    }
    let counts: Mutex<Counts>
    init(_ faults: Int) { counts = Mutex(Counts(struck: Array(repeating: 0, count: faults))) }

    func isDue(_ number: Int, _ times: Int) -> Bool {
      counts.withLock { counts in
        if counts.struck[number] >= times { return false }
        counts.struck[number] += 1
        return true
      }
    }
  }
}

private func stall(_ cancel: Cancellation, _ operation: String) throws(BlobError) {
  try MonotonicClock().sleep(.seconds(3600), cancel, "\(operation) a source that stalls")
}

private final class FaultyReader: BlobReader {
  private let reader: any BlobReader
  private let faults: [FaultySource.Fault]
  private let record: FaultySource.Record
  private let cancel: Cancellation
  private var offset: Int64

  init(
    _ reader: any BlobReader, _ faults: [FaultySource.Fault], _ record: FaultySource.Record, at offset: Int64,
    _ cancel: Cancellation
  ) {
    self.reader = reader
    self.faults = faults
    self.record = record
    self.offset = offset
    self.cancel = cancel
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    record.counts.withLock { counts in
      counts.reads += 1
      counts.smallestRead = min(counts.smallestRead ?? .max, buffer.count)
    }
    var wanted = buffer.count
    /// Ends the read before a byte at which a fault is configured.
    func stop(at byte: Int64) { if byte > offset { wanted = Int(min(Int64(wanted), byte - offset)) } }
    for (number, fault) in faults.enumerated() {
      switch fault {
      case .shortReads(let most): wanted = min(wanted, most)
      case .fail(let byte, let error, let times):
        if byte == offset, record.isDue(number, times) { throw error }
        stop(at: byte)
      case .invalidate(let byte, let times):
        if byte == offset, record.isDue(number, times) {
          throw BlobError(.invalidated, "the source was lost at byte \(byte)")
        }
        stop(at: byte)
      case .stall(let byte):
        if byte == offset { try stall(cancel, "read") }
        stop(at: byte)
      case .truncate(let byte):
        if offset >= byte { return 0 }
        stop(at: byte)
      case .failOpening, .replaced, .stallOpening, .changedAtEnd: break
      }
    }
    let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(wanted)))
    offset += Int64(count)
    return count
  }

  // A file region would bypass the faults.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    for case .changedAtEnd in faults { throw BlobError(.changed, "the source is not what it was") }
    try reader.finish()
  }
}
