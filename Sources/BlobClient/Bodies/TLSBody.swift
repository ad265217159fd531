#if os(Linux)
  import BlobHTTP
  import Blobs

  /// A body that goes through libcurl's TLS past libcurl: read from its source, encrypted, and sent in one call for each
  /// time it was read, however many records that makes.
  final class TLSBody: RequestBody {
    let length: Int64
    private(set) var sent: Int64 = 0
    private var channel: TLSChannel?
    var hasBegun: Bool { feed.hasBegun }

    private let feed: any BodyFeed
    private var sealed: Int64 = 0

    init(_ feed: any BodyFeed, length: Int64) {
      self.feed = feed
      self.length = length
    }

    func begin(on wire: Connection) {
      if case .sealed(let channel) = wire { self.channel = channel }
      feed.begin()
    }

    func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome {
      guard let channel else { return .broken }
      if channel.pending == 0 {
        let count = channel.seal(try feed.next(cancel))
        feed.release(count)
        sealed += Int64(count)
        if count == 0 { return channel.isOpen ? .waiting : .broken }
      }
      let outcome = channel.flush()
      // A record is longer than what is in it: never more than has left.
      sent = max(sent, sealed - Int64(channel.pending))
      if sent == length { channel.giveBack() }
      return outcome
    }
  }
#endif
