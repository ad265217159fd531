#if os(Linux)
  import Blobs

  /// A body that the lane sends by itself, after its head.
  protocol LaneBody: AnyObject {
    var length: Int64 { get }
    /// Bytes the connection has taken.
    var sent: Int64 { get }
    /// Whether something of its source is used up, so that another connection needs a new one of these.
    var hasBegun: Bool { get }
    /// The head is about to be sent over this.
    func begin(on wire: Wire)
    /// Hands the connection what it takes now, up to a few MiB. Blocks only where the source does.
    func send(_ cancel: Cancellation) throws(BlobError) -> LaneOutcome
  }

  /// What came of an attempt to send.
  enum LaneOutcome {
    /// More can be sent at once.
    case moved
    /// The connection takes nothing now.
    case blocked
    /// Nothing can be sent before what comes is read.
    case waiting
    /// The connection is broken.
    case broken
  }

  /// When it is time to see whether there is an answer already, while the connection takes everything.
  struct LaneLook {
    private let start: Int64
    private let began = SuspendingClock.now

    init(after body: any LaneBody) { start = body.sent }

    func isDue(for body: any LaneBody) -> Bool {
      body.sent - start >= 4 << 20 || SuspendingClock.now - began > .milliseconds(20)
    }
  }
#endif
