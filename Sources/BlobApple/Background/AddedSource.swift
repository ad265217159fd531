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
  /// Another version was being sent when it was added, or is sent in its place, or it was sent before and is sent again
  /// because another source has its place.
  var isAgain = false

  /// The arguments of `add` as the journal keeps them, so that a later launch of the uploader with this identifier can upload
  /// the source with them. `number`, `isAgain`: see `JournalAddition`.
  func addition(by uploader: String, number: Int64, isAgain: Bool = false) -> JournalAddition {
    JournalAddition(
      metadata: metadata, contentType: contentType, version: version, uploader: uploader, isAgain: isAgain ? true : nil,
      number: number)
  }
}

extension BackgroundUpload.State {
  /// The upload may be tried again: by the next launch, or by `tryAgain`. It is not if the source is gone.
  var goesOnLater: Bool {
    guard case .failed(let error) = self else { return false }
    return !(error.side == .source && (error.cause as? BlobError)?.code == .notFound)
  }
}
