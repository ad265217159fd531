import Blobs

/// The bytes that a `SharedPass` has read, and how many of them each destination has taken.
struct SharedPassState {
  /// How far one destination is.
  struct Share {
    enum State { case expected, taking, leftBehind }
    var state = State.expected
    var offset: Int64 = 0
    /// The number of its latest reader. An earlier one reads on by itself.
    var reader = 0
    var isOpen = false
    /// How long others have waited for it.
    var waited = Duration.zero
  }

  var shares: [Share]
  /// nil: there is no memory for it, or nobody needs it any more.
  var buffer: SharedBuffer?
  /// Offset of the byte after the last one in the buffer.
  var end: Int64 = 0
  var opening: Result<BlobInfo, BlobError>?
  /// Set when nothing more is read: at the end, or after an error.
  var ending: Result<Void, BlobError>?
  var isRunning = false

  /// Offset of the first byte that a destination may still take.
  var start: Int64 { shares.lazy.filter { $0.state != .leftBehind }.map(\.offset).min() ?? end }
  var isNeeded: Bool { shares.contains { $0.state != .leftBehind } }
  /// Every byte is read, and every destination that belongs to this pass has all of them.
  var isOver: Bool {
    guard case .success? = ending else { return !isNeeded }
    return start == end && !shares.contains { $0.state == .expected }
  }
}
