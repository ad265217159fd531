import Blobs

/// What a lane knows of the exchange it is busy with.
final class Transfer {
  let job: LaneJob
  /// The job's, with what `Exchange.prepare` has added.
  var request: HTTPRequest
  /// The body's; nil where there is none.
  var reader: (any BlobReader)?
  /// Of the body; 0 without one; nil: only the end will tell.
  var length: Int64?

  #if canImport(Glibc)
    /// The reader is another thread's.
    var isReadAhead = false
  #endif

  /// Body bytes given to libcurl, and whether it asked past the last one.
  var given: Int64 = 0
  var ended = false
  /// Body bytes handed to the connection and reported to `Exchange.sent`.
  var sent: Int64 = 0
  /// Bytes of heads and content received.
  var received: Int64 = 0

  /// What the pool was told of it; nil: it need not be.
  var told: LaneTold?

  /// How often libcurl began to send the request: twice, when a kept-alive connection was found dead.
  var attempts = 0
  #if canImport(Glibc)
    /// What libcurl has connected for it.
    var wire: Wire?
  #endif
  var head = HeadParser()
  var content: [UInt8] = []
  /// Whether some of the content went to `Exchange.received`.
  var hasBegun = false
  /// What a callback found wrong, before libcurl says that a callback stopped it.
  var failure: TransportError?

  init(_ job: LaneJob) {
    self.job = job
    request = job.request
  }

  /// libcurl has handed every body byte to the system.
  var isSent: Bool { length.map { sent >= $0 } ?? ended }
}
