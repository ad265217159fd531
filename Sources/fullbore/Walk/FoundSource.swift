import BlobUpload
import Blobs

/// A source that was found, and its name at the destination. A class, since each file passes through several lists.
final class FoundSource: Sendable {
  enum Place: Sendable {
    /// A file whose path is `identity`, in the version that was found.
    case file(FileStamp)
    /// The rendered edit of a file.
    case rendition(FoundRendition)
    /// A URL for a `SourceResolver`, such as `https:` or `sqlite:`.
    case url(String)
    case standardInput
  }

  let place: Place
  /// The source's identity in the journal; for a file, its absolute path.
  let identity: BytePath
  /// The path below the destination, and how it counts on where it is taken.
  let name: NumberedName
  /// The paths below further destinations of the same push; empty: there are none.
  private let others: [BytePath]

  init(_ place: Place, _ identity: BytePath, _ name: NumberedName, others: [BytePath] = []) {
    (self.place, self.identity, self.name, self.others) = (place, identity, name, others)
  }

  /// `arrival`: the path below the destination. A NUL in it stands for the counter of the layout.
  convenience init(_ place: Place, _ identity: BytePath, as arrival: BytePath, others: [BytePath] = []) {
    self.init(place, identity, NumberedName(arrival), others: others)
  }

  /// The source for one destination of the push.
  func at(_ destination: Int) -> FoundSource {
    destination == 0 ? self : FoundSource(place, identity, as: others[destination - 1])
  }

  convenience init(_ item: TreeItem) { self.init(.file(item.stamp), item.path, as: item.relative) }

  /// The identity of standard input is the same in every run, although each run reads other content.
  static let standardInputIdentity: BytePath = "-"
}

/// Finds sources in batches. Reports those that cannot be sent.
protocol SourceWalk: Sendable {
  /// The next batch, which is never empty; nil at the end.
  func next() async -> [FoundSource]?
}
