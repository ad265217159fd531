import Blobs

/// Bounds the recoveries that send bytes again, while the server keeps next to nothing of what it is sent.
///
/// Failures after which an uploader waits are counted by `FailureCount`. These are the other ones: a smaller body or another
/// form of the request follows at once, and a new upload begins with the first byte.
struct RecoveryBounds: Sendable {
  /// Requests that may be sent again at once, smaller or in another form, since the server kept a fair share of what it
  /// was sent. From 5 GiB down to the smallest body there are ten sizes.
  private static let mostChanges = 16
  /// New uploads that may follow those of which bytes had been sent, since an upload kept more bytes than any before it.
  private static let mostRestarts = 2

  private var changes = 0
  private var costlyRestarts = 0
  /// The most bytes that an upload has kept which was given up.
  private var mostKept: Int64 = 0
  /// The smallest body that was refused for its size since the server kept a fair share of what it was sent.
  private var refusedBody: Int64?

  /// The server has kept a fair share of what it was sent, as `FailureCount` has it.
  mutating func noteProgress() { (changes, refusedBody) = (0, nil) }

  /// Counts a request that is to be sent again in another form. false: that was done too often.
  mutating func allowsChange() -> Bool {
    changes += 1
    return changes <= Self.mostChanges
  }

  /// Counts a body of `size` bytes that was too large. false: one of this size was refused before, so that it cannot be made
  /// smaller, or that was done too often.
  mutating func allowsSmallerBody(than size: Int64) -> Bool {
    if let refusedBody, size >= refusedBody { return false }
    refusedBody = size
    return allowsChange()
  }

  /// Counts a new upload in place of one that has kept `kept` bytes. false: that was done too often. One of which nothing
  /// was sent costs nothing, and is not counted.
  mutating func allowsRestart(hasSent: Bool, kept: Int64) -> Bool {
    if !hasSent { return true }
    if kept > mostKept { (mostKept, costlyRestarts) = (kept, 0) } else { costlyRestarts += 1 }
    return costlyRestarts <= Self.mostRestarts
  }
}

extension UploadError {
  /// The error after which an upload is not begun anew any more.
  var afterTooManyRestarts: UploadError {
    var error = final
    error.message += " (given up, since the server has kept nothing more of it in several new uploads)"
    return error
  }
}

extension UploadRun {
  /// The server tells how far it is while a body comes: then the spool makes room, and the part need not end.
  var isAcknowledgedOnTheWay: Bool { uploader.destination.traits.acknowledgesOnTheWay && !measures }

  /// As long as the server allows, and the user; without acknowledgements it ends where the spool is full.
  func endless(_ part: Part) -> Part {
    var limits = uploader.destination.currentLimits
    if let session { limits.tighten(by: session.limits) }
    var part = part
    let most = [limits.largest, uploader.partSize].compactMap { $0 }.min()
    if limits.smallest <= source.largestPart ?? .max { part.length = most }
    return part
  }
}
