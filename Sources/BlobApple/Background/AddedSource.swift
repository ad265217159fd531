import BlobUpload
import Blobs

/// The arguments of a call of `add`.
struct AddedSource: Sendable {
  let source: any BlobSource
  let identity: BytePath
  let name: BytePath
  let contentType: String
  let metadata: [String: String]
  /// `Validator.version` of the source when it was added; nil: it was not looked at, or its versions cannot be told apart.
  var version: String?
  /// `TaskLabel.version` of the source when it was added; nil as `version`, and for an upload of an earlier launch.
  var label: String?
  /// Another version was being sent when it was added, or is sent in its place.
  var isAgain = false

  /// What the journal keeps, so that a later launch of the uploader with this identifier can upload the source with the same
  /// arguments.
  func addition(by uploader: String) -> JournalAddition {
    JournalAddition(metadata: metadata, contentType: contentType, version: version, uploader: uploader)
  }
}

extension JournalClaim {
  /// Whether the journal must keep what the upload was added with, and by which uploader.
  var needsAddition: Bool {
    switch self {
    case .fresh, .replaced, .resume, .unsure: true
    case .done, .busy: false
    }
  }
}

extension BackgroundUpload.State {
  /// The upload may be tried again: by the next launch, or by `tryAgain`. It is not if the source is gone.
  var goesOnLater: Bool {
    guard case .failed(let error) = self else { return false }
    return !(error.side == .source && (error.cause as? BlobError)?.code == .notFound)
  }
}
