/// The failures of an upload, and what they have shown.
struct RecoveryState {
  var failures = FailureCount()
  var bounds = RecoveryBounds()
  /// Uploads that the server did not know at the first query, right after it had created them.
  var unknownCreations = UnknownCreations()
  /// Number of lost sessions. Acknowledged bytes do not reset it: a server that loses every session would be sent the
  /// same bytes forever.
  var restarts = 0
  /// The error of the latest failed request.
  var interruption: UploadError?
  /// A request that created an upload with the file's bytes was interrupted. The next one creates it without bytes, so
  /// that the upload can be resumed.
  var createsEmpty = false
  /// OPTIONS reported no limits, but a refusal did: the server supports uploads in parts.
  var takesParts = false

  /// The server has `count` more bytes than ever before in this session. Returns false if these are so few of those it
  /// was sent that the failures stay counted.
  mutating func noteKept(_ count: Int64) -> Bool {
    let isFair = failures.noteKept(count)
    if isFair { bounds.noteProgress() }
    return isFair
  }
}

/// Limits recoveries that send bytes again while the server stores almost none of them.
///
/// `FailureCount` counts the failures that are followed by a delay. This type counts the others: a smaller body or
/// another form of the request is sent immediately, and a new upload starts at the first byte.
struct RecoveryBounds: Sendable {
  /// Maximum number of requests that are sent again immediately, smaller or in another form, since the server last
  /// stored a fair share of the bytes sent. There are ten sizes from 5 GiB down to the smallest body.
  private static let mostChanges = 16
  /// Maximum number of new uploads after uploads to which bytes were sent, since an upload stored more bytes than any
  /// before.
  private static let mostRestarts = 2

  private var changes = 0
  private var costlyRestarts = 0
  /// The highest number of bytes that a discarded upload had stored.
  private var mostKept: Int64 = 0
  /// The smallest body that was refused for its size since the server last stored a fair share of the bytes sent.
  private var refusedBody: Int64?

  /// The server has stored a fair share of the bytes sent, as defined by `FailureCount`.
  mutating func noteProgress() { (changes, refusedBody) = (0, nil) }

  /// Counts a request that is sent again in another form. false: the limit is reached.
  mutating func allowsChange() -> Bool {
    changes += 1
    return changes <= Self.mostChanges
  }

  /// Counts a body of `size` bytes that was too large. false: a body of this size was refused before, so it cannot be
  /// made smaller, or the limit is reached.
  mutating func allowsSmallerBody(than size: Int64) -> Bool {
    if let refusedBody, size >= refusedBody { return false }
    refusedBody = size
    return allowsChange()
  }

  /// Counts a new upload that replaces one with `kept` stored bytes. false: the limit is reached. An upload to which no
  /// bytes were sent costs nothing, and is not counted.
  mutating func allowsRestart(hasSent: Bool, kept: Int64) -> Bool {
    if !hasSent { return true }
    if kept > mostKept { (mostKept, costlyRestarts) = (kept, 0) } else { costlyRestarts += 1 }
    return costlyRestarts <= Self.mostRestarts
  }
}

extension UploadError {
  /// The final error after too many new uploads.
  var afterTooManyRestarts: UploadError {
    var error = final
    error.message += " (given up, since the server has kept nothing more of it in several new uploads)"
    return error
  }

  /// Whether the server has refused to say how much it has of an upload, and asking again would not help.
  var refusesQuestion: Bool { recovery == .giveUp && side == .file && status.map { 400..<500 ~= $0 } ?? false }

  /// The final error of an upload about which its server tells nothing.
  var ofEarlierUpload: UploadError {
    var error = self
    error.message += " (asked about the upload that an earlier run began)"
    return error
  }

  /// The final error of an upload that would have to begin anew.
  var withoutRestart: UploadError {
    var error = final
    error.message += "; it cannot begin anew, since the source is read once"
    return error
  }
}
