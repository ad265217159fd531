#if canImport(Glibc)
  import Blobs

  /// A body that the lane sends by itself over libcurl's connection; libcurl sends the head and reads the answer.
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
    /// Nothing can be sent before libcurl has read what comes.
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

  /// Where a lane's body stands that libcurl has no part in.
  struct LanePlace {
    /// libcurl's; -1 until the head is about to be sent, and once sending has failed: libcurl is to find out how.
    var socket: Int32 = -1
    init(socket: Int32 = -1) { self.socket = socket }

    /// The last bytes libcurl has sent.
    private var headEnd: UInt32 = 0
    /// Whether libcurl has sent the head of the request, so that it is the body's turn.
    var isBodysTurn: Bool { socket >= 0 && headEnd == 0x0D0A_0D0A }

    /// libcurl has sent bytes of a head; until there is a socket, not of this request but to a proxy.
    mutating func follows(_ head: UnsafeRawBufferPointer) {
      if socket < 0 { return }
      for byte in head.suffix(4) { headEnd = headEnd << 8 | UInt32(byte) }
    }
  }
#endif
