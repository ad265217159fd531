import Blobs

/// A source and a file at a destination that were found to have the same bytes, each in one version. The journal keeps it, so
/// that neither is read again while both have these versions.
package struct ComparedVersion: Sendable, Hashable {
  /// The version of the source.
  package var source: Validator
  /// The version of the file at the destination, as `RemoteFile.version`.
  package var remote: String
  /// The digests were compared, or all bytes.
  package var isReadBack: Bool

  /// Whether `info` is of the same version of the source. A card that was inserted again has other numbers: its files are
  /// compared again.
  func isOf(_ info: BlobInfo) -> Bool {
    guard let now = info.validator else { return false }
    switch now.likeness(to: source) {
    case .same: return true
    case .unsure: return info.instanceLasts && now.hasSameNumbers(as: source)
    case .different: return false
    }
  }
}
