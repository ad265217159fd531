import BlobHTTP
import Blobs

/// A body that is sent from the memory that it was read into. Works with every kind of connection.
final class CopiedBody: RequestBody {
  private(set) var sent: Int64 = 0
  private(set) var isComplete = false
  var hasBegun: Bool { feed.hasBegun }
  var awaitsSource: Bool { connection?.unsent == 0 && feed.awaitsSource }

  private let feed: any BodyFeed
  private var connection: Connection?
  /// Bytes of the feed that the connection has accepted.
  private var accepted: Int64 = 0

  init(_ feed: any BodyFeed) { self.feed = feed }

  func begin(on connection: Connection) {
    self.connection = connection
    feed.begin()
  }

  func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome {
    guard let connection else { return .broken }
    var outcome: SendOutcome
    if connection.unsent == 0 {
      let count: Int
      (count, outcome) = connection.write(try feed.next(cancel))
      feed.release(count)
      accepted += Int64(count)
    } else {
      outcome = connection.flush()
    }
    sent = max(sent, feed.content(upTo: accepted - Int64(connection.unsent)))
    isComplete = feed.isAtEnd && connection.unsent == 0
    if isComplete, case .sealed(let channel) = connection { channel.endSending() }
    return outcome
  }
}
