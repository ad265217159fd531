#if os(Linux)
  import BlobHTTP
  import Blobs
  import CCurl
  import Platform

  /// A body that goes over plain HTTP past libcurl, out of the memory it was read into.
  final class CopiedBody: RequestBody {
    let length: Int64
    private(set) var sent: Int64 = 0
    var hasBegun: Bool { feed.hasBegun }

    private let feed: any BodyFeed
    private var socket: Int32 = -1

    init(_ feed: any BodyFeed, length: Int64) {
      self.feed = feed
      self.length = length
    }

    func begin(on wire: Connection) {
      socket = wire.socket
      feed.begin()
    }

    func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome {
      let bytes = try feed.next(cancel)
      let count = Platform.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
      if count < 0 { return errno == EAGAIN || errno == EINTR ? .blocked : .broken }
      feed.release(count)
      sent += Int64(count)
      // It took some: it is full.
      return count == bytes.count ? .moved : .blocked
    }
  }
#endif
