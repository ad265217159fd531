import BlobHTTP
import Blobs

/// What several protocols record in a session.
extension UploadSession {
  /// The file's length that the server was told; nil: none yet.
  var length: Int64? {
    get { state["length"].flatMap { Int64(digits: $0) } }
    set { state["length"] = newValue.map { String($0) } }
  }

  /// The group that the server is told with each part of the upload; nil: it belongs to none.
  var group: UploadGroup? {
    get { state["group"].flatMap { UploadGroup($0) } }
    set { state["group"] = newValue?.text }
  }

  /// What the upload's file is called, in a form of the protocol's own; nil: an earlier version did not record it.
  var names: String? {
    get { state["names"] }
    set { state["names"] = newValue }
  }
}
