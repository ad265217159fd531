import BlobHTTP
import Synchronization

/// Notes whether a destination was ever reached, has responded, has accepted a request or has stored a file. This
/// decides how long a failed request is repeated, and whether a failure concerns one file or all of them.
final class HostState: Sendable {
  /// The queue ends after `few` consecutive failed files if no request ever succeeded, and after `many` if one did.
  private static let (few, many) = (3, 12)

  private let reached = Atomic(false)
  private let answered = Atomic(false)
  private let responseCount = Atomic(0)
  private let accepted = Atomic(false)
  private let stored = Atomic(false)
  /// Consecutive files that ran out of attempts.
  private let exhausted = Atomic(0)

  /// Files of a queue that were refused before any file was stored, and the first of these errors.
  private let refusals = Mutex<(count: Int, first: UploadError?)>((0, nil))
  /// Consecutive files, since a file was stored, that were refused with a status other than 403.
  private let refusedInARow = Atomic(0)
  /// The number of these files that were refused for lack of space (507). 0 whenever `refusedInARow` is.
  private let withoutRoomInARow = Atomic(0)

  /// Limits the number of parts, of all files, that are sent at the same time.
  let parts = Gate(UploadDestination.mostParts)
  /// Size in bytes of the largest body that the server or a proxy may accept; `.max` until a body was refused for its
  /// size.
  let largestBody = Atomic<Int64>(.max)
  let methods = MethodOverride()
  let trailers = Trailers()
  let putAnswers = PutAnswers()
  let redirectedPuts = RedirectedPuts()
  let existing = ExistingFiles()
  let names = NameGates()
  let overwritten = OverwrittenNames()
  let folderPlace = FolderPlace()
  /// Whether a tus server returns the bytes of an upload under the upload's own URL.
  let uploadURLs = UploadURLs()

  /// The destination exists: a connection to it was made, or it has responded.
  var isReal: Bool { reached.load(ordering: .relaxed) || hasAnswered }
  private var hasAnswered: Bool { answered.load(ordering: .relaxed) }
  /// The server has responded to a request with success. That request may have stored nothing, such as the creation of
  /// an upload.
  var hasAccepted: Bool { accepted.load(ordering: .relaxed) }
  /// The server has at least one whole file, which this run has sent or has found there.
  var hasStored: Bool { stored.load(ordering: .relaxed) }

  func noteReached() { if !reached.load(ordering: .relaxed) { reached.store(true, ordering: .relaxed) } }

  func noteAnswer() { if !hasAnswered { answered.store(true, ordering: .relaxed) } }

  /// The number of responses to all requests so far.
  var responses: Int { responseCount.load(ordering: .relaxed) }

  func note(_ response: HTTPResponse) {
    noteAnswer()
    responseCount.add(1, ordering: .relaxed)
    if !response.isSuccess { return }
    if !hasAccepted { accepted.store(true, ordering: .relaxed) }
    if exhausted.load(ordering: .relaxed) > 0 { exhausted.store(0, ordering: .relaxed) }
  }

  func noteStored() {
    if !hasStored { stored.store(true, ordering: .relaxed) }
    if refusedInARow.load(ordering: .relaxed) > 0 {
      withoutRoomInARow.store(0, ordering: .relaxed)
      refusedInARow.store(0, ordering: .relaxed)
    }
  }

  /// Classifies a final refusal. If the server has stored no file yet, a 403 concerns the whole destination.
  func judge(refusal error: UploadError) -> UploadError {
    var error = error
    if error.status == 403, !hasStored { error.side = .destination }
    return error
  }

  /// Classifies the failure of one file of a queue. A refusal of the first file may concern its name or folder only, so
  /// the queue continues until several files were refused. Once a file was stored, a 403 concerns one file. Any other
  /// refusal then concerns one file too, unless many consecutive files are refused. `holdsBytes`: the server has
  /// acknowledged bytes of some file of the queue, so it may store others, and every file is tried.
  ///
  /// A server that has no space for a file (507) may have some for a smaller one, or in another folder. If it has none
  /// for a few consecutive files, the disk is full: each further file might be sent to its last byte in vain.
  func judge(oneOfMany error: UploadError, holdsBytes: Bool) -> UploadError {
    guard error.mayRefuseOneFile else { return error }
    var (ofFile, ofAll) = (error, error)
    (ofFile.side, ofAll.side) = (.file, .destination)
    let inARow = error.status == 403 ? 0 : refusedInARow.add(1, ordering: .relaxed).newValue
    let withoutRoom = error.status == 507 ? withoutRoomInARow.add(1, ordering: .relaxed).newValue : 0
    if withoutRoom >= Self.few { return ofAll.afterFailures(withoutRoom) }
    if hasStored { return inARow < Self.many ? ofFile : ofAll.afterFailures(inARow) }
    // A server that lists its methods, none of which uploads, refuses every file.
    if error.message.contains(HTTPResponse.noUploads) { return error }
    let count = refusals.withLock { [ofAll] refusals in
      refusals.first = refusals.first ?? ofAll
      refusals.count += 1
      return refusals.count
    }
    return count < Self.few || holdsBytes ? ofFile : ofAll
  }

  /// The first refusal of a file of the queue, if the destination has stored no file; otherwise nil.
  var refusalOfAll: UploadError? { hasStored ? nil : refusals.withLock { $0.first } }

  /// Classifies a file that ran out of attempts: the destination is at fault if it never responded, or if several
  /// consecutive files failed.
  func judge(exhausted error: UploadError) -> UploadError {
    guard error.side == .file else { return error }
    var error = error
    let count = exhausted.add(1, ordering: .relaxed).newValue
    if !hasAnswered {
      error.side = .destination
    } else if count >= (hasAccepted ? Self.many : Self.few) {
      error.side = .destination
      return error.afterFailures(count)
    }
    return error
  }
}

extension UploadError {
  /// A refusal that may concern one file, its name or its folder. Examples are a redirect to a folder of this name, and
  /// no space for a file of this size.
  fileprivate var mayRefuseOneFile: Bool {
    if cause is RefusedKeys { return false }
    return switch status ?? 0 {
    case 403: side == .destination || side == .file
    case 300..<400, 404, 405, 501, 507: side == .destination
    default: false
    }
  }

  /// The error that ends the queue after `count` consecutive failures.
  fileprivate func afterFailures(_ count: Int) -> UploadError {
    var error = self
    error.message += "; \(count) files in a row came to nothing, so the rest is not tried"
    return error
  }
}
