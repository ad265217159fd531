import BlobUpload
import Blobs

/// Something to be sent that was found, and the name it arrives under.
struct FoundSource: Sendable {
  enum Place: Sendable {
    /// At its identity; the version that was seen.
    case file(FileStamp)
    /// Not a file, but its edit.
    case rendition(FoundRendition)
    /// `https:`, `sqlite:`, as a `SourceResolver` takes it.
    case url(String)
    case standardInput
  }

  let place: Place
  /// Who it is in the journal: for a file, its absolute path.
  let identity: BytePath
  /// Below the destination.
  let arrival: BytePath

  init(_ place: Place, _ identity: BytePath, as arrival: BytePath) {
    self.place = place
    self.identity = identity
    self.arrival = arrival
  }

  init(_ item: TreeItem) { self.init(.file(item.stamp), item.path, as: item.relative) }

  /// Under this name for every run: what comes next time is something else.
  static let standardInputIdentity: BytePath = "-"
}

/// Finds what is to be sent, batch by batch. What cannot be sent is reported.
protocol SourceWalk: Sendable {
  /// Never empty; nil at the end.
  func next() async -> [FoundSource]?
}
