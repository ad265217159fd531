/// A FIFO queue whose elements are not moved on removal.
struct ExchangeQueue {
  private var jobs: [QueuedExchange?] = []
  private var first = 0

  var isEmpty: Bool { jobs.isEmpty }
  /// At least the number of waiting exchanges; it also counts some that were removed.
  var count: Int { jobs.count - first }

  mutating func append(_ job: QueuedExchange) { jobs.append(job) }

  mutating func popFirst() -> QueuedExchange? {
    while first < jobs.count {
      let job = jobs[first]
      jobs[first] = nil
      first += 1
      guard let job else { continue }
      compact()
      return job
    }
    compact()
    return nil
  }

  mutating func remove(_ job: QueuedExchange) {
    if let index = jobs[first...].firstIndex(where: { $0 === job }) { jobs[index] = nil }
  }

  /// Drops the consumed front part once it is large enough.
  private mutating func compact() {
    if first == jobs.count {
      jobs.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= 64 && first * 2 >= jobs.count {
      jobs.removeFirst(first)
      first = 0
    }
  }
}
