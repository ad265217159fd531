import BlobUpload

/// Which calls of a run, and which jobs that ended before it, have succeeded or failed.
struct PhotoEvidence {
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

// Decides whether a photo is at fault, or the server or the photo library.
extension JournalJob {
  /// A job and its retry are two attempts. Without a success of another photo, this many come to nothing in a week or two.
  private static let mostAttempts = 28

  /// The photo has failed again. While others arrive, it is at fault itself after a job and its retry. Otherwise
  /// the server may be off, and it is tried again later, a limited number of times.
  mutating func giveUpOrWait(since reason: String?, whileOthersArrive: Bool) {
    error = reason
    let isGivenUp = whileOthersArrive ? attempts >= 2 : attempts >= Self.mostAttempts
    state = isGivenUp ? .refused : .waiting
  }

  /// Whether a photo that waits is tried in this run. The pause grows from ten minutes to a day.
  func isDue(at now: Int64) -> Bool {
    let pause = min(600 << Int64(min(max(0, attempts / 2 - 1), 10)), 86_400)
    let (age, overflow) = now.subtractingReportingOverflow(updated)
    // The clock may have been wrong, and then the time since tells nothing.
    return overflow || age.magnitude >= UInt64(pause)
  }
}
