import Synchronization

/// The places for connections that an event loop has. Any thread may reserve one.
struct ConnectionPlaces: ~Copyable, Sendable {
  private let most: Int
  private let reserved = Atomic(0)

  init(_ most: Int) { self.most = most }

  var countReserved: Int { reserved.load(ordering: .relaxed) }

  /// Returns false if all places are reserved.
  func reserve() -> Bool {
    var count = countReserved
    while count < most {
      let (isDone, current) = reserved.weakCompareExchange(expected: count, desired: count + 1, ordering: .relaxed)
      if isDone { return true }
      count = current
    }
    return false
  }

  func release() { reserved.subtract(1, ordering: .relaxed) }
}
