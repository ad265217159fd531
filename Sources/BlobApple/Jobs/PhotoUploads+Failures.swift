import BlobUpload

extension PhotoUploads {
  /// Calls of a run that have failed for no known reason: that of one file or job, or one that all have in common.
  struct Failures {
    /// The first one.
    var reason: String?
    /// Jobs whose registration failed.
    var jobs: [JournalJob] = []
    var registered = 0

    static let mostJobs = 32
  }

  /// Where other jobs were registered in the same run, the failures are those of the files: they count as lost jobs, and
  /// so come to an end. Otherwise all is tried again.
  func countFailures() async throws(Interruption) {
    if failures.registered == 0 { return }
    for job in failures.jobs { try await keep(job) }
    failures.jobs = []
  }
}
