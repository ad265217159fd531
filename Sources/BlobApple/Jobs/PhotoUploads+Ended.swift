import BlobHTTP
import BlobUpload

// Records the results of jobs that the system has ended, and retries those that failed.
extension PhotoUploads {
  /// Records what has become of a job, and lets the system forget it or retry it. Returns whether the system has no job
  /// for this URL any more.
  func settle(_ job: PhotoJob) async throws(Interruption) -> Bool {
    let url = Self.url(job)
    guard
      var row = try await note({ () throws(JournalError) in try await ledger.job(at: url, account: job.account) })
    else {
      // It was registered for another journal. Its room is needed, and what it sent is not known here. One of ours is that of
      // an earlier installation, and another part of the app may have others.
      if job.state != .underWay { return try acknowledge(job) }
      return job.version != nil && url.hasPrefix(destination.folder.text) ? try cancel(job) : false
    }
    // Its registration was reported as failed.
    if row.state == .waiting, job.version == row.version, job.version != nil {
      row.state = .registering
    }
    switch job.state {
    case .underWay:
      if row.state == .registering {
        row.state = .registered
        try await keep(row)
        return false
      }
      if mayBeUnderWay(row) { return false }
      guard try cancel(job) else { return false }
      if row.isOpen, job.version == nil || job.version == row.version {
        (row.state, row.attempts) = (.idle, row.attempts - 1)
        try await keep(row)
      }
      return true
    case .succeeded:
      evidence.succeeded += 1
      try await recordSuccess(of: job, &row)
      return try acknowledge(job)
    // Another version has taken its place, because the job was believed to be lost.
    case .failed where job.version != nil && row.version != nil && job.version != row.version:
      return try acknowledge(job)
    case .failed(let reason, let mayRetry):
      if row.isOpen, mayRetry, row.state == .retrying || row.attempts % 2 == 1 {
        // A job of an earlier destination, or of another account, keeps its request: no credentials of this one go there.
        let session = job.account == account ? try session() : nil
        if row.state != .retrying {
          (row.state, row.attempts, row.error) = (.retrying, row.attempts + 1, reason)
          if row.done == Self.overtaken { row.done = JournalJob.unknownVersion }
          try await keep(row)
        }
        var request: HTTPRequest?
        if let session, let url = HTTPURL(url) {
          request = destination.request(
            url, of: session, version: row.version, created: job.created, replaces: row.done != nil)
        }
        do throws(PhotoJobError) {
          try system.retry(job, to: request)
          return false
        } catch {
          switch error.code {
          case .limit: throw .stopped
          // Another job takes its place. The retry was not made.
          case .gone, .failed:
            (row.state, row.attempts, row.error) = (.idle, row.attempts - 1, "\(reason); then \(error)")
          }
          try await keep(row)
          return error.code == .gone ? true : try acknowledge(job)
        }
      }
      if row.isOpen {
        row.giveUpOrWait(since: reason, whileOthersArrive: evidence.succeeded > 0)
        try await keep(row)
      } else if row.state == .idle, job.version != nil, job.version == row.done {
        // An earlier job for this version has succeeded. If a third one has replaced that file since, this one has not
        // repaired it.
        try await sendAgain(&row)
        try await keep(row)
      }
      return try acknowledge(job)
    }
  }

  /// `JournalJob.done` if another version has arrived since the job that is under way was registered, so that job's
  /// version may have arrived before it.
  static let overtaken = "??"

  /// Records that a version has arrived. Before iOS 26.5, a job that the system says nothing about counts as lost after a
  /// while, and may yet succeed when another version is under way, or has arrived. It is then unknown which of them
  /// arrived last, so the newest is sent once more.
  private func recordSuccess(of job: PhotoJob, _ row: inout JournalJob) async throws(Interruption) {
    let isExpected = job.version == nil || job.version == row.version
    switch row.state {
    case .registering, .registered, .retrying:
      if !isExpected {
        row.done = Self.overtaken
      } else if row.done == Self.overtaken {
        try await sendAgain(&row)
      } else {
        (row.done, row.version, row.state, row.attempts, row.error) = (row.version, nil, .idle, 0, nil)
      }
    case .refused, .waiting:
      // What was refused, perhaps because of this file, replaces it.
      if isExpected {
        (row.done, row.version, row.state, row.attempts, row.error) = (row.version, nil, .idle, 0, nil)
      } else {
        try await sendAgain(&row)
      }
    case .idle:
      // If it was recorded before, the extension ended before it could acknowledge the job.
      if job.version == nil || job.version == row.done { return }
      try await sendAgain(&row)
    }
    try await keep(row)
  }

  /// The newest version is sent in place of a file of ours whose version is unknown.
  private func sendAgain(_ row: inout JournalJob) async throws(Interruption) {
    (row.done, row.version, row.state, row.attempts, row.error) = (JournalJob.unknownVersion, nil, .idle, 0, nil)
    try await note { [asset = row.asset] () throws(JournalError) in try await ledger.unsettle(asset) }
  }

  /// Returns false if the system still has the job, which may have ended meanwhile.
  private func cancel(_ job: PhotoJob) throws(Interruption) -> Bool {
    do throws(PhotoJobError) { try system.cancel(job) } catch {
      if error.code == .limit { throw .stopped }
      return false
    }
    return true
  }

  /// Returns false if the system still has the job.
  private func acknowledge(_ job: PhotoJob) throws(Interruption) -> Bool {
    do throws(PhotoJobError) { try system.acknowledge(job) } catch {
      switch error.code {
      case .limit: throw .stopped
      // It needs no acknowledgement.
      case .gone: break
      case .failed:
        evidence.reason = evidence.reason ?? "\(error)"
        return false
      }
    }
    return true
  }
}
