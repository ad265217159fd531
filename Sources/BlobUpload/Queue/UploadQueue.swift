import BlobCrypto
import BlobHTTP
import Blobs

/// Sends many items, several at a time; each is claimed in the journal before its first byte is sent.
public struct UploadQueue: Sendable {
  /// Sends each item.
  public var uploader: Uploader
  /// The journal in which items are claimed.
  public var journal: Journal
  /// The ID of the destination in the journal.
  public var destinationID: Int64
  package var concurrency = QueueConcurrency()
  /// Asks the server about items that were finished before, and sends again those that it lost.
  public var check = false
  /// Reads every upload back and compares it before it counts as finished.
  public var verify = false
  /// Makes this digest of each item while its bytes are read to be sent. With `verify`, what is read back is compared by it,
  /// so that the source is read once. nil: a digest is made only of what cannot be read again.
  package var digest: Digest.Algorithm?
  /// A file that has only grown since this journal sent it may replace the version that was sent, if the server still
  /// has that.
  public var replacesGrown = false
  package var naming = NamingRules()
  /// An item is as after an interruption if the server has refused the credentials, or if its source has changed: the
  /// caller, or the next run, goes on with it.
  package var keepsOpen = false
  /// Totals over all items of the queue. It may be shared with other queues.
  public var totals = UploadTotals()
  package var others = OthersWait()

  /// Creates a queue. `destinationID` is what `Journal.destinationID` returned.
  public init(_ uploader: Uploader, journal: Journal, destinationID: Int64) {
    self.uploader = uploader
    self.journal = journal
    self.destinationID = destinationID
  }

  /// Sends the items of `feed`, batch by batch, until it returns nil; batches of about 128 keep the journal fast.
  ///
  /// A failed item is reported to the observer, and the others continue. Throws if no other item can succeed: the
  /// destination cannot be reached or refuses all uploads, the journal cannot be written, or the task was cancelled.
  public func run(
    _ feed: @escaping @Sendable () async throws(UploadError) -> [UploadItem]?, _ observer: some UploadObserver
  ) async throws(UploadError) {
    try await QueueRun(self, observer).send(feed)
  }
}

extension UploadQueue {
  /// Maximum number of items that are sent at the same time. Small items mostly wait for the network, so the number is
  /// large.
  public var jobs: Int {
    get { concurrency.jobs }
    set { concurrency.jobs = newValue }
  }

  /// Maximum number of items over `largeFrom` bytes among these: a few fill most links, and an interruption leaves
  /// fewer of them unfinished. More are sent if the transport finds that they increase the throughput.
  public var largeJobs: Int {
    get { concurrency.largeJobs }
    set { concurrency.largeJobs = newValue }
  }

  /// Items of more bytes than this are limited by `largeJobs`.
  public var largeFrom: Int64 {
    get { concurrency.largeFrom }
    set { concurrency.largeFrom = newValue }
  }

  /// If set, the queue waits for items that another process is sending, until they are stored or that process gives
  /// them up. Called once for each such process. Not for a feed without an end. nil: these items end as `.busy`.
  public var waiting: (@Sendable (_ pid: Int32) -> Void)? {
    get { others.waiting }
    set { others.waiting = newValue }
  }
}

/// How many items a queue sends at the same time.
package struct QueueConcurrency: Sendable {
  /// As `UploadQueue.jobs`.
  package var jobs = 64
  /// As `UploadQueue.largeJobs`.
  package var largeJobs = 8
  /// As `UploadQueue.largeFrom`, in bytes.
  package var largeFrom: Int64 = 4 << 20

  func isLarge(_ work: ClaimedItem) -> Bool { work.item.info.length ?? .max > largeFrom }

  /// Moves small items to the front. Otherwise many small ones, which mostly wait for responses, could queue behind a
  /// few that fill the link.
  func smallFirst(_ works: [ClaimedItem]) -> [ClaimedItem] {
    works.filter { !isLarge($0) } + works.filter(isLarge)
  }
}
