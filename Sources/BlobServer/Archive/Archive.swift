import BlobCrypto
import Blobs

/// An archive of a folder, as it was listed. It has no bytes yet: `ArchiveReader` makes them while they are sent.
final class Archive: Sendable {
  let tree: FolderTree
  let format: ArchiveFormat
  /// Where the head of each entry is, and after those the offset of the directory.
  let offsets: [Int64]
  /// Where the directory is.
  let directory: Range<Int64>
  /// The length of the whole archive in bytes.
  let length: Int64
  /// A strong validator: another name, length or time of any file makes another one. RFC 9110 §8.8.3.
  let etag: String

  /// Throws 413 if the files are longer than any archive may be.
  init(_ tree: FolderTree, _ format: ArchiveFormat) throws(ServerError) {
    self.tree = tree
    self.format = format
    var (offsets, place): ([Int64], Int64) = ([], 0)
    offsets.reserveCapacity(tree.entries.count + 1)
    var size = 0
    for index in tree.entries.indices {
      let member = Self.member(index, of: tree)
      offsets.append(place)
      let around = format.head(of: member).count + format.tail(of: member, sum: 0).count
      size += format.directoryEntry(of: member, sum: 0, offset: place).count
      // Sparse files may have any length.
      place = place.addingClamped(member.length).addingClamped(Int64(around))
      if place > Self.longest { throw ServerError(413, "the files of the folder are too long for one archive") }
    }
    offsets.append(place)
    self.offsets = offsets
    directory = place..<place + Int64(size)
    length = directory.upperBound + Int64(format.end(count: tree.entries.count, directory: directory).count)
    etag = "\"\(format.rawValue)-\(Digest.hex(tree.version.prefix(16)))\""
  }

  private static let longest: Int64 = 1 << 60

  var count: Int { tree.entries.count }

  func member(_ index: Int) -> ArchiveFormat.Member { Self.member(index, of: tree) }

  private static func member(_ index: Int, of tree: FolderTree) -> ArchiveFormat.Member {
    let entry = tree.entries[index]
    return ArchiveFormat.Member(
      name: tree.archivePath(of: index), isFolder: entry.isFolder, length: entry.length,
      seconds: entry.modified / 1_000_000_000 - (entry.modified % 1_000_000_000 < 0 ? 1 : 0))
  }

  /// The last entry whose head begins at `offset` or before it.
  func entry(at offset: Int64) -> Int {
    var (low, high) = (0, count - 1)
    while low < high {
      let middle = (low + high + 1) / 2
      if offsets[middle] <= offset { low = middle } else { high = middle - 1 }
    }
    return low
  }

  /// The entries whose checksums are in a range of the archive, although the range does not have all their bytes.
  func entriesWithSums(in range: Range<Int64>) -> Range<Int> {
    guard format.hasSums, range.lowerBound > 0, !range.isEmpty else { return 0..<0 }
    let first = entry(at: range.lowerBound)
    let next = offsets[first] == range.lowerBound ? first : first + 1
    let start = range.upperBound > offsets[count] ? 0 : first
    return min(start, next)..<next
  }

  /// A range of the archive that is sent.
  struct Part: Sendable {
    let archive: Archive
    var range: Range<Int64>
    /// Where the files are read.
    let store: any UploadStore
    /// The folder that the archive is of.
    let folder: ServedPath
    let cache: ArchiveSums
    /// The checksums of the entries, as far as they are known.
    var sums: [UInt32?]
    /// Called with a line for the operator if the archive ends early.
    let notice: (@Sendable (String) -> Void)?
  }
}
