import BlobHTTP
import BlobUpload

// Records the results of jobs that the system has ended, and retries those that failed.
extension PhotoUploads {
  /// Records what has become of a job, and lets the system forget it or retry it. Returns whether the system has no job
  /// for this URL any more.
  func settle(_ job: PhotoJob) async throws(Interruption) -> Bool {
    let url = Self.key(job)
    guard var row = try await note({ () throws(JournalError) in try await ledger.job(at: url) }) else {
      // It was registered for another journal. Its room is needed, and what it sent is not known here.
      return job.state == .underWay ? false : try acknowledge(job)
    }
    switch job.state {
    case .underWay:
      if row.state == .registering {
        row.state = .registered
        try await keep(row)
      }
      return false
    case .succeeded:
      // If this was recorded before, the extension ended before it could acknowledge the job.
      if row.isOpen || row.state == .refused {
        (row.done, row.version, row.state, row.attempts, row.error) = (row.version, nil, .idle, 0, nil)
        try await keep(row)
      }
      return try acknowledge(job)
    case .failed(let reason, let mayRetry):
      if row.isOpen, mayRetry, row.state == .retrying || row.attempts < 2 {
        if row.state != .retrying {
          (row.state, row.attempts, row.error) = (.retrying, 2, reason)
          try await keep(row)
        }
        // A job of an earlier destination keeps its request, so that no credentials of this one go there.
        let request = HTTPURL(url).flatMap { destination.request($0, replaces: row.done != nil) }
        do throws(PhotoJobError) {
          try system.retry(job, to: request)
          return false
        } catch {
          switch error.code {
          case .limit: throw .stopped
          case .gone: return true
          // Another job takes its place.
          case .failed: (row.state, row.attempts, row.error) = (.idle, 1, "\(reason); then \(error)")
          }
        }
        try await keep(row)
        return try acknowledge(job)
      }
      if row.isOpen {
        (row.state, row.error) = (.refused, reason)
        try await keep(row)
      }
      return try acknowledge(job)
    }
  }

  /// Returns false if the system still has the job.
  private func acknowledge(_ job: PhotoJob) throws(Interruption) -> Bool {
    do throws(PhotoJobError) { try system.acknowledge(job) } catch {
      switch error.code {
      case .limit: throw .stopped
      // It needs no acknowledgement.
      case .gone: break
      case .failed:
        failures.reason = failures.reason ?? "\(error)"
        return false
      }
    }
    return true
  }
}
