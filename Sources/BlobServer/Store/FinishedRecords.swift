/// The records of finished uploads, oldest first. A client needs a record only to learn that its upload has finished if
/// it did not receive the last response. Clients can create any number of records, so the oldest are deleted before
/// they expire if there are too many.
package struct FinishedRecords: Sendable {
  /// The limits of what is kept.
  package struct Limits: Sendable {
    package var count: Int
    package var bytes: Int64

    package init(count: Int = 50_000, bytes: Int64 = 16 << 20) {
      self.count = count
      self.bytes = bytes
    }
  }

  private let limits: Limits
  /// The size of each record in bytes.
  private var sizes: [UploadID: Int64] = [:]
  /// 128 bits, because the disk may report any size.
  private var bytes: Int128 = 0
  /// Ids from the oldest to the newest, beginning at index `first`. Deleted records stay in the array until it is
  /// compacted.
  private var order: [UploadID] = []
  private var first = 0

  init(_ limits: Limits) { self.limits = limits }

  mutating func add(_ id: UploadID, bytes size: Int64) {
    remove(id)
    sizes[id] = size
    bytes += Int128(size)
    order.append(id)
  }

  mutating func remove(_ id: UploadID) {
    guard let size = sizes.removeValue(forKey: id) else { return }
    bytes -= Int128(size)
    if order.count > 2 * sizes.count + 1024 {
      order = order[first...].filter { sizes[$0] != nil }
      first = 0
    }
  }

  mutating func removeAll() { self = FinishedRecords(limits) }

  /// Removes and returns the oldest record if there are too many; returns nil otherwise.
  mutating func removeExcess() -> UploadID? {
    while sizes.count > limits.count || bytes > Int128(limits.bytes), first < order.count {
      let oldest = order[first]
      first += 1
      if sizes[oldest] == nil { continue }
      remove(oldest)
      return oldest
    }
    return nil
  }
}
