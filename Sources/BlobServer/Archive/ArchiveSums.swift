import Blobs
import CZlib
import Synchronization

/// Checksums of files that were in archives. A client that fetches the rest of an archive after a cut gets it at once,
/// since the files before the cut need not be read again.
final class ArchiveSums: Sendable {
  private let values = Mutex<[FileStamp: UInt32]>([:])
  /// At most some 30 MB. Files whose sums are dropped are read again.
  private static let most = 200_000

  func remember(_ sum: UInt32, of entry: FolderTree.Entry) {
    values.withLock { values in
      if values.count >= Self.most { values.removeAll() }
      values[entry.stamp] = sum
    }
  }

  /// The sums of all entries of a tree, as far as they are known. Nothing is read for those of folders and empty files.
  func known(of tree: FolderTree) -> [UInt32?] {
    values.withLock { values in tree.entries.map { $0.length == 0 ? 0 : values[$0.stamp] } }
  }
}

/// CRC-32, as in ZIP archives and gzip. ITU-T V.42 §8.1.1.6.2.
struct CRC32 {
  private(set) var value: UInt32 = 0

  /// Processes the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if bytes.isEmpty { return }
    value = UInt32(
      truncatingIfNeeded: crc32_z(
        UInt(value), bytes.baseAddress!.assumingMemoryBound(to: UInt8.self), bytes.count))
  }
}

/// The library that computes the checksums, and its version, for `--version`.
package var archiveLibrary: String { "zlib \(String(cString: zlibVersion()))" }
