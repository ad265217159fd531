import BlobHTTP
import Synchronization

/// Whether a destination was ever reached, has answered, or taken anything: it decides how long a failure is worth repeating, and
/// whether it is one file's or everyone's.
final class Acquaintance: Sendable {
  /// So many files that come to nothing are enough, where nothing ever succeeded; where something did, more are.
  private static let (few, many) = (3, 12)

  private let reached = Atomic(false)
  private let answered = Atomic(false)
  private let accepted = Atomic(false)
  /// Files in a row that ran out of attempts.
  private let exhausted = Atomic(0)

  /// Files of a queue that were refused with 403 before anything was accepted, and the first of these refusals.
  private let refusals = Mutex<(count: Int, first: UploadError?)>((0, nil))

  /// Parts of files that are under way.
  let parts = Gate(UploadDestination.mostParts)
  /// Bytes of a body that may get through; less than all once one was refused.
  let largestBody = Atomic<Int64>(.max)
  let methods = MethodOverride()
  let trailers = Trailers()
  let putAnswers = PutAnswers()
  let existing = ExistingFiles()
  let names = NameGates()
  /// Whether a tus server gives out the bytes of an upload under the upload's own URL.
  let uploadURLs = UploadURLs()

  /// There is someone: bytes went there, whatever became of them.
  var isReal: Bool { reached.load(ordering: .relaxed) || hasAnswered }
  private var hasAnswered: Bool { answered.load(ordering: .relaxed) }
  var hasAccepted: Bool { accepted.load(ordering: .relaxed) }

  func noteReached() { if !reached.load(ordering: .relaxed) { reached.store(true, ordering: .relaxed) } }

  func noteAnswer() { if !hasAnswered { answered.store(true, ordering: .relaxed) } }

  func note(_ response: HTTPResponse) {
    noteAnswer()
    if !response.isSuccess { return }
    if !hasAccepted { accepted.store(true, ordering: .relaxed) }
    if exhausted.load(ordering: .relaxed) > 0 { exhausted.store(0, ordering: .relaxed) }
  }

  /// A refusal that is final: who refuses everything from the first file on, refuses us.
  func judge(refusal error: UploadError) -> UploadError {
    var error = error
    if error.status == 403, !hasAccepted { error.side = .destination }
    return error
  }

  /// Of a queue of files, a 403 to the first may be a refusal of one file, name or folder: the queue goes on until several
  /// were refused.
  func judge(oneOfMany error: UploadError) -> UploadError {
    guard error.status == 403, error.side == .destination else { return error }
    var ofFile = error
    ofFile.side = .file
    if hasAccepted { return ofFile }
    let count = refusals.withLock { refusals in
      refusals.first = refusals.first ?? error
      refusals.count += 1
      return refusals.count
    }
    return count < Self.few ? ofFile : error
  }

  /// The destination has accepted nothing, and has refused a file of the queue; nil: neither is so.
  var refusalOfAll: UploadError? { hasAccepted ? nil : refusals.withLock { $0.first } }

  /// A file has run out of attempts: the destination's fault when it never answered, or when it is one of several.
  func judge(exhausted error: UploadError) -> UploadError {
    guard error.side == .file else { return error }
    var error = error
    let count = exhausted.add(1, ordering: .relaxed).newValue
    if !hasAnswered {
      error.side = .destination
    } else if count >= (hasAccepted ? Self.many : Self.few) {
      error.side = .destination
      error.message += "; \(count) files in a row came to nothing, so the rest is not tried"
    }
    return error
  }
}
