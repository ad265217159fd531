#if os(Linux)
  import BlobHTTP
  import Blobs

  /// A body that is sent after its head.
  protocol RequestBody: AnyObject {
    /// Bytes of it that the connection has taken; framing is not counted.
    var sent: Int64 { get }
    /// The connection has taken all of it, with the last chunk and the trailers where it has them.
    var isComplete: Bool { get }
    /// Whether something of its source is used up, so that another connection needs a new one of these.
    var hasBegun: Bool { get }
    /// The head is about to be sent over this.
    func begin(on connection: Connection)
    /// Hands the connection what it takes now, up to a few MiB. Blocks only where the source does.
    func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome
  }

  /// What came of an attempt to send.
  enum SendOutcome {
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
  struct AnswerCheck {
    private let start: Int64
    private let began = SuspendingClock.now

    init(after body: any RequestBody) { start = body.sent }

    func isDue(for body: any RequestBody) -> Bool {
      body.sent - start >= 4 << 20 || SuspendingClock.now - began > .milliseconds(20)
    }
  }
#endif
