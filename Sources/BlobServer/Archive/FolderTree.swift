import BlobCrypto
import Blobs
import Platform

/// All files and folders below a folder, as they were when they were listed. The folder itself is the first entry.
///
/// There may be 200,000 of them, so an entry has no memory of its own: all names are in one array.
package struct FolderTree: Sendable {
  package struct Entry: Sendable {
    /// The index of the folder that it is in.
    fileprivate let parent: Int32
    let isFolder: Bool
    /// In bytes; 0 for a folder.
    let length: Int64
    /// Nanoseconds since 1970.
    let modified: Int64
    let changed: Int64
    let inode: UInt64
    let device: UInt64
    /// Where its name in the folder, and its name in an archive, are in `names`.
    fileprivate let name: Range<UInt32>
    fileprivate let archiveName: Range<UInt32>

    /// The numbers that distinguish this version of the file from others.
    var stamp: FileStamp {
      FileStamp(device: device, inode: inode, size: length, modified: modified, changed: changed)
    }

    /// Whether this is still the file of the entry, with the same bytes.
    func isStill(_ item: StoredItem) -> Bool {
      !item.isFolder && item.length == length && item.modified == modified && item.changed == changed
        && item.inode == inode
    }
  }

  private(set) var entries: [Entry] = []
  private var names: [UInt8] = []

  /// The most entries, and the most bytes of names, which are in memory while the archive is sent.
  private static let mostEntries = 200_000
  private static let mostNames = 16 << 20

  /// A tree without entries but the folder itself. `name`: that of the folder in an archive.
  init(_ folder: stat, name: String) throws(ServerError) {
    try append(folder, "", name, in: 0)
  }

  /// Adds an entry to the folder `parent`. Throws 413 if there are too many.
  mutating func append(_ status: stat, _ name: BytePath, _ archiveName: String, in parent: Int) throws(ServerError) {
    let item = StoredItem(status)
    let own = store(Array(name.bytes))
    let other = archiveName.utf8.elementsEqual(name.bytes) ? own : store(Array(archiveName.utf8))
    entries.append(
      Entry(
        parent: Int32(parent), isFolder: item.isFolder, length: item.isFolder ? 0 : item.length,
        modified: item.modified,
        changed: item.changed, inode: item.inode, device: UInt64(truncatingIfNeeded: status.st_dev), name: own,
        archiveName: other))
    if entries.count > Self.mostEntries || names.count > Self.mostNames {
      throw Self.tooMany
    }
  }

  /// How many more entries there may be.
  var room: Int { Self.mostEntries - entries.count }

  static var tooMany: ServerError {
    ServerError(
      413, "the folder has too many files for one archive (\(mostEntries) at most): fetch its folders one by one")
  }

  private mutating func store(_ name: [UInt8]) -> Range<UInt32> {
    let start = UInt32(names.count)
    names += name
    return start..<UInt32(names.count)
  }

  /// The path of an entry below the listed folder; empty for the folder itself.
  func path(of index: Int) -> [UInt8] {
    joined(index) { $0.name }
  }

  /// The path in an archive, beginning with the name of the listed folder. A folder has a slash at its end.
  func archivePath(of index: Int) -> [UInt8] {
    joined(index) { $0.archiveName } + (entries[index].isFolder ? [UInt8(ascii: "/")] : [])
  }

  private func joined(_ index: Int, _ range: (Entry) -> Range<UInt32>) -> [UInt8] {
    var parts: [ArraySlice<UInt8>] = []
    var index = index
    while true {
      let entry = entries[index]
      let part = range(entry)
      if !part.isEmpty { parts.append(names[Int(part.lowerBound)..<Int(part.upperBound)]) }
      if index == 0 { break }
      index = Int(entry.parent)
    }
    return Array(parts.reversed().joined(separator: [UInt8(ascii: "/")]))
  }

  /// The approximate size in memory, in bytes.
  var size: Int { entries.capacity * MemoryLayout<Entry>.stride + names.capacity }

  /// A digest over the names, lengths and times of all entries.
  var version: [UInt8] {
    let digest = Digest(.sha256)
    names.withUnsafeBytes { digest.update($0) }
    for entry in entries {
      let numbers: [Int64] = [
        Int64(entry.parent), entry.isFolder ? 1 : 0, entry.length, entry.modified, entry.changed,
        Int64(truncatingIfNeeded: entry.inode), Int64(truncatingIfNeeded: entry.device),
        Int64(entry.name.lowerBound), Int64(entry.name.upperBound), Int64(entry.archiveName.lowerBound),
        Int64(entry.archiveName.upperBound),
      ]
      numbers.withUnsafeBytes { digest.update($0) }
    }
    return digest.value()
  }
}
