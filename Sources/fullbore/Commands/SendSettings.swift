import BlobUpload
import Blobs

/// How a run sends its files.
struct SendSettings: Sendable {
  /// nil: the usual number of retries.
  var retries: Int?
  var jobs: Int?
  var partSize: Int64?
  var partsAtOnce: Int?
  var spool = SpoolOptions()
  var checks = false
  var verifies = false
  var replacesGrown = false
  var onConflict = NameConflict.fail
  /// Waits for files that another process is sending.
  var waitsForOthers = true

  func apply(to uploader: inout Uploader) {
    uploader.retry = RetryPolicy(retries: retries)
    uploader.partSize = partSize
    uploader.spool = spool
    uploader.partsAtOnce = partsAtOnce
  }

  /// `feed`: knows the files of one photo, and gives files other names, if the push has that option.
  func apply(to queue: inout UploadQueue, renaming feed: PushFeed?) {
    queue.check = checks
    queue.verify = verifies
    queue.replacesGrown = replacesGrown
    // The receiver of a form decides on names, and its refusal may mean something else.
    if queue.uploader.destination.traits.recipient == nil {
      if onConflict == .skip { queue.naming.taken = .leaveOut }
      if onConflict == .rename, let feed { queue.naming.taken = .rename { feed.renamed($0) } }
    }
    if queue.uploader.destination.traits.recipient == nil || feed?.groups.isNumbering != true {
      queue.naming.groups = feed?.groups
    }
    if let jobs {
      (queue.jobs, queue.largeJobs) = (jobs, jobs)
    } else if let most = OpenFiles.mostJobs {
      (queue.jobs, queue.largeJobs) = (min(queue.jobs, most), min(queue.largeJobs, most))
    }
  }
}

extension SendSettings {
  /// The settings of `push` or `watch`.
  init(_ options: PushOptions) {
    self.init(
      retries: options.connection.retries, jobs: options.pace.jobs, partSize: options.partSize,
      partsAtOnce: options.pace.partsAtOnce, spool: options.spool, checks: options.checks, verifies: options.verifies,
      onConflict: options.onConflict)
  }
}
