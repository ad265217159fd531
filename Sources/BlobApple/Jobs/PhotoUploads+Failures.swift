import BlobUpload

// Decides whether a photo is at fault, or the server or the photo library.
extension PhotoUploads {
  /// Which calls of a run, and which jobs that ended before it, have succeeded or failed.
  struct Evidence {
    /// The first call that has failed and concerns no photo.
    var reason: String?
    /// Jobs whose registration failed in this run, and the reason of the first one.
    var unregistered: [JournalJob] = []
    var registrationError: String?
    var registered = 0
    var succeeded = 0
    /// Photos wait since they have failed, and none has arrived since.
    var isOutage = false

    /// A run ends after this many registrations that have failed.
    static let mostUnregistered = 32
    /// Photos that have failed, without a success since: more photos would fail as well.
    static let outageFrom = 3
  }

  /// A job and its retry are two attempts. Without a success of another photo, this many come to nothing in a week or two.
  private static let mostAttempts = 28

  /// The photo of `row` has failed again. While others arrive, it is at fault itself after a job and its retry. Otherwise
  /// the server may be off, and it is tried again later, a limited number of times.
  func giveUpOrWait(_ row: inout JournalJob, since reason: String?, whileOthersArrive: Bool) {
    row.error = reason
    let isGivenUp = whileOthersArrive ? row.attempts >= 2 : row.attempts >= Self.mostAttempts
    row.state = isGivenUp ? .refused : .waiting
  }

  /// Whether a photo that waits is tried in this run. The pause grows from ten minutes to a day.
  func isDue(_ row: JournalJob) -> Bool {
    let pause = min(600 << Int64(min(max(0, row.attempts / 2 - 1), 10)), 86_400)
    let (age, overflow) = now().subtractingReportingOverflow(row.updated)
    // The clock may have been wrong, and then the time since tells nothing.
    return overflow || age.magnitude >= UInt64(pause)
  }

  /// After a success, all photos that wait are tried again at once. Otherwise finds out whether there is an outage.
  func lookAtWaiting() async throws(Interruption) {
    let waiting = try await note { () throws(JournalError) in try await ledger.waitingJobs() }
      .filter { $0.account == account }
    if evidence.succeeded == 0 {
      evidence.isOutage = waiting.count >= Evidence.outageFrom
      return
    }
    for var row in waiting {
      try checkTermination()
      row.state = .idle
      try await keep(row)
    }
  }

  /// Gives up the photos that could not be registered while others could.
  func judgeUnregistered() async throws(Interruption) {
    guard evidence.registered > 0 || evidence.succeeded > 0 else { return }
    for var row in evidence.unregistered where row.attempts >= 2 {
      giveUpOrWait(&row, since: row.error, whileOthersArrive: true)
      try await keep(row)
    }
    evidence.unregistered.removeAll { $0.attempts >= 2 }
  }
}
