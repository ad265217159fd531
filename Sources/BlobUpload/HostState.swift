import BlobHTTP
import Synchronization

/// What this run has learned about a destination. It decides how long a failed request is repeated, and whether a failure
/// concerns one file or all of them.
final class HostState: Sendable {
  /// The queue ends after `few` consecutive failed files if no request ever succeeded, and after `many` if one did.
  private static let (few, many) = (3, 12)

  let contact = HostContact()
  private let failures = FailureCounts()

  /// Limits the number of parts, of all files, that are sent at the same time.
  let parts = Gate(UploadDestination.mostParts)
  /// Size in bytes of the largest body that the server or a proxy may accept; `.max` until a body was refused for its
  /// size.
  let largestBody = Atomic<Int64>(.max)
  let methods = MethodOverride()
  let trailers = Trailers()
  let putAnswers = PutAnswers()
  let existing = ExistingFiles()
  let names = NameGates()
  let overwritten = OverwrittenNames()
  let folderPlace = FolderPlace()
  /// Whether a tus server returns the bytes of an upload under the upload's own URL.
  let uploadURLs = UploadURLs()

  func note(_ response: HTTPResponse) {
    contact.note(response)
    if response.isSuccess { failures.noteAccepted() }
  }

  func noteStored() {
    contact.noteStored()
    failures.noteStored()
  }

  /// Classifies a final refusal. If the server has stored no file yet, a 403 concerns the whole destination.
  func judge(refusal error: UploadError) -> UploadError {
    var error = error
    if error.status == 403, !contact.hasStored { error.side = .destination }
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
    let (inARow, withoutRoom) = failures.addRefused(status: error.status)
    if withoutRoom >= Self.few { return ofAll.afterFailures(withoutRoom) }
    if contact.hasStored { return inARow < Self.many ? ofFile : ofAll.afterFailures(inARow) }
    // A server that lists its methods, none of which uploads, refuses every file.
    if error.message.contains(HTTPResponse.noUploads) { return error }
    let count = failures.addRefusal(ofAll)
    return count < Self.few || holdsBytes ? ofFile : ofAll
  }

  /// The first refusal of a file of the queue, if the destination has stored no file; otherwise nil.
  var refusalOfAll: UploadError? { contact.hasStored ? nil : failures.firstRefusal }

  /// Classifies a file that ran out of attempts: the destination is at fault if it never responded, or if several
  /// consecutive files failed.
  func judge(exhausted error: UploadError) -> UploadError {
    guard error.side == .file else { return error }
    var error = error
    let count = failures.addExhausted()
    if !contact.hasAnswered {
      error.side = .destination
    } else if count >= (contact.hasAccepted ? Self.many : Self.few) {
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
