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
  /// When the journal got it, in seconds since 1970; nil: it does not have it yet.
  package var noted: Int64?

  /// Whether `info` is of the same version of the source. A card that was inserted again has other numbers: its files are
  /// compared again.
  func isOf(_ info: BlobInfo) -> Bool { info.isCertainly(source) }
}

extension BlobInfo {
  /// Whether this is the same version of a source as an earlier one, also without reading it.
  func isCertainly(_ version: Validator) -> Bool {
    guard let now = validator else { return false }
    switch now.match(with: version) {
    case .same: return true
    case .unsure: return instanceLasts && now.hasSameNumbers(as: version)
    case .different: return false
    }
  }
}
