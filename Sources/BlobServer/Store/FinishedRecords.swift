/// The records of finished uploads, oldest first. A client needs one only to learn that its upload has ended where the
/// last answer was lost. Clients can make as many as they like, so that the oldest are deleted before they expire where
/// there are too many.
package struct FinishedRecords: Sendable {
  /// The most that are kept.
  package struct Limits: Sendable {
    package var count: Int
    package var bytes: Int64

    package init(count: Int = 50_000, bytes: Int64 = 16 << 20) {
      self.count = count
      self.bytes = bytes
    }
  }

  private let limits: Limits
  /// Bytes of each record.
  private var sizes: [UploadID: Int64] = [:]
  /// 128 bits: the disk may tell any size.
  private var bytes: Int128 = 0
  /// Oldest first, from `first` on. Records that were deleted stay in it until it is tidied.
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

  /// Takes out the oldest record where there are too many; nil: there are not.
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
