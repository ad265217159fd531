import Blobs
import Platform

/// A version of a published file. It is recognized after its permissions, its owner or its links have changed.
///
/// The ETag has the change time, since nothing else tells of every write: a program may write into a file and set the
/// modification time back, as `exiftool -P` does. But `chmod`, `chown` and a hard link of a backup change that time as well,
/// and would make an upload that replaces the file fail after all its bytes have arrived. So another change time is accepted
/// if the permissions, the owner, the group or the number of links differ too, which explains it, and the numbers that
/// belong to the bytes do not differ. A change time that nothing explains may hide other bytes.
package struct StoredVersion: RawRepresentable, Sendable, Hashable {
  package let etag: String
  /// nil: only the ETag is known, as of a version that a client names, of an object in a bucket, and from records of earlier
  /// servers.
  let stamp: VersionStamp?

  package init(etag: String, _ stamp: VersionStamp? = nil) { (self.etag, self.stamp) = (etag, stamp) }

  /// The text of the version in a record: the ETag and, after a space, the numbers of the stamp. An ETag has no spaces.
  package var rawValue: String { stamp.map { "\(etag) \($0.text)" } ?? etag }

  package init?(rawValue: String) {
    let words = rawValue.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard let first = words.first, !first.isEmpty else { return nil }
    etag = String(decoding: first, as: UTF8.self)
    guard words.count > 1 else {
      stamp = nil
      return
    }
    guard let stamp = VersionStamp(words.dropFirst().map { String(decoding: $0, as: UTF8.self) }) else { return nil }
    self.stamp = stamp
  }

  /// Whether the file has this version; nil: there is no file.
  package func isVersion(of item: StoredItem?) -> Bool {
    guard let item else { return false }
    if item.etag == etag { return true }
    guard let stamp, let other = item.stamp else { return false }
    return stamp.hasSameBytes(as: other) && stamp.attributes != other.attributes
  }
}

extension StoredItem {
  package var version: StoredVersion { StoredVersion(etag: etag, stamp) }
}

/// Numbers of a file: those that change with its bytes, and those that explain another change time.
package struct VersionStamp: Sendable, Hashable {
  private let length: Int64
  private let inode: UInt64
  private let modified: Int64
  /// The birth time in nanoseconds since 1970, which distinguishes files that have had the same inode. nil: the file system
  /// does not tell.
  private let born: Int64?
  struct Attributes: Sendable, Hashable { let mode, owner, group, links: UInt64 }
  let attributes: Attributes

  private init(_ status: stat, born: Int64?) {
    (length, inode) = (Int64(status.st_size), UInt64(status.st_ino))
    (modified, self.born) = (status.modified, born)
    attributes = Attributes(
      mode: UInt64(status.st_mode), owner: UInt64(status.st_uid), group: UInt64(status.st_gid),
      links: UInt64(status.st_nlink))
  }

  init(_ status: stat, of file: Descriptor) { self.init(status, born: birthTime(of: "", in: file.number)) }

  init(_ status: stat, of name: BytePath, in folder: Folder) {
    self.init(status, born: birthTime(of: name, in: folder.number))
  }

  func hasSameBytes(as other: VersionStamp) -> Bool {
    (length, inode, modified, born) == (other.length, other.inode, other.modified, other.born)
  }

  fileprivate var text: String {
    let (one, two) = ("\(length) \(inode) \(modified)", born.map { "\($0)" } ?? "unknown")
    return "\(one) \(two) \(attributes.mode) \(attributes.owner) \(attributes.group) \(attributes.links)"
  }

  fileprivate init?(_ words: [String]) {
    guard words.count == 8, let length = Int64(words[0]), let inode = UInt64(words[1]), let modified = Int64(words[2]),
      let mode = UInt64(words[4]), let owner = UInt64(words[5]), let group = UInt64(words[6]),
      let links = UInt64(words[7])
    else { return nil }
    (self.length, self.inode, self.modified, born) = (length, inode, modified, Int64(words[3]))
    if born == nil, words[3] != "unknown" { return nil }
    attributes = Attributes(mode: mode, owner: owner, group: group, links: links)
  }
}

/// The birth time of the file `name` in a folder, in nanoseconds since 1970; nil: the file system does not tell. With an empty
/// name, that of the file that is open as `folder`.
func birthTime(of name: BytePath, in folder: Int32) -> Int64? {
  var time = timespec()
  #if os(Linux)
    var (seconds, part): (Int, UInt32) = (0, 0)
    if name.withCString({ fb_birth_time(folder, $0, &seconds, &part) }) != 0 { return nil }
    (time.tv_sec, time.tv_nsec) = (time_t(seconds), Int(part))
  #else
    var status = stat()
    let isOpen = name.bytes.isEmpty
    let told = isOpen ? fstat(folder, &status) : name.withCString { fstatat(folder, $0, &status, AT_SYMLINK_NOFOLLOW) }
    if told != 0 { return nil }
    time = status.st_birthtimespec
  #endif
  return nanoseconds(time)
}
