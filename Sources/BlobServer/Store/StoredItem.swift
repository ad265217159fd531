import BlobHTTP
import Blobs

/// Properties of a file or folder at a path.
package struct StoredItem: Sendable, Hashable {
  package var isFolder: Bool
  package var length: Int64
  /// Modification time in nanoseconds since 1970, clamped to the range of Int64.
  package var modified: Int64
  /// Modification time in seconds since 1970, rounded down.
  package var modifiedSeconds: Int64
  /// Time of the last change of its bytes, name or permissions, which clients cannot choose. Nanoseconds since 1970.
  package var changed: Int64
  /// Distinguishes successive files at the same path.
  package var inode: UInt64
  /// nil: the file was only looked at for a list or its bytes, or is an object in a bucket.
  var stamp: VersionStamp?

  package init(
    isFolder: Bool, length: Int64, modified: Int64, modifiedSeconds: Int64, changed: Int64, inode: UInt64
  ) {
    self.isFolder = isFolder
    self.length = length
    self.modified = modified
    self.modifiedSeconds = modifiedSeconds
    self.changed = changed
    self.inode = inode
  }

  /// Whether both are the same version of a file, as far as the ETag tells. The stamp says nothing more of it.
  package static func == (one: StoredItem, other: StoredItem) -> Bool {
    one.isFolder == other.isFolder && one.length == other.length && one.modified == other.modified
      && one.modifiedSeconds == other.modifiedSeconds && one.changed == other.changed && one.inode == other.inode
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(length)
    hasher.combine(changed)
    hasher.combine(inode)
  }

  /// A strong validator: different bytes under the same name have another inode or another change time. The
  /// modification time would not be enough, because clients can choose it and inode numbers are reused. RFC 9110
  /// §8.8.3.
  package var etag: String {
    "\"\(String(length, radix: 16))-\(String(changed, radix: 16))-\(String(inode, radix: 16))\""
  }
}

/// An open file. A descriptor is open as long as this value exists.
package struct OpenItem: Sendable {
  package enum Content: Sendable {
    case file(Descriptor)
    /// Its bytes are at another computer.
    case remote(any RemoteContent)
  }
  package var item: StoredItem
  package var content: Content

  package init(item: StoredItem, content: Content) { (self.item, self.content) = (item, content) }

  /// nil: the file is at another computer.
  var file: Descriptor? { if case .file(let file) = content { file } else { nil } }
}

/// A part of a folder's entries.
package struct FolderPage: Sendable {
  package var entries: [StoredEntry]
  /// The name after which the next part begins; nil: this is the last one.
  package var next: BytePath?
  /// Whether this part begins with the first name.
  package var isFirst: Bool

  package init(entries: [StoredEntry], next: BytePath?, isFirst: Bool) {
    (self.entries, self.next, self.isFirst) = (entries, next, isFirst)
  }
}

/// An entry of a folder listing.
package struct StoredEntry: Sendable {
  package var name: BytePath
  package var item: StoredItem

  package init(name: BytePath, item: StoredItem) { (self.name, self.item) = (name, item) }
}

/// The result of a publication.
package struct Publication: Sendable {
  package enum Outcome: Sendable { case created, replaced, same }
  package var outcome: Outcome
  package var item: StoredItem
  /// Whether the file has the modification time that its record requests.
  package var hasModificationTime = false
  /// The group that was published with this file; nil: the file was published alone, or in an earlier attempt.
  package var group: UploadGroup?
  /// The version of the file, for the client; nil: it may not know it.
  package var etag: String? { isConcealed ? nil : item.etag }
  private var isConcealed = false

  package init(outcome: Outcome, item: StoredItem, hasModificationTime: Bool = false) {
    (self.outcome, self.item, self.hasModificationTime) = (outcome, item, hasModificationTime)
  }

  /// The client learns of the file only that it has the bytes that it has sent.
  mutating func conceal() { (isConcealed, hasModificationTime) = (true, false) }
}
