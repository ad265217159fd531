import BlobCrypto
import BlobServer
import Blobs
import Platform
import Synchronization

/// The folder in the destination in which files are written until they are whole, and a record of those that are and of
/// how much of the others is on the disk. It lets a command that was killed go on, and is removed once every file is
/// restored.
///
/// Memory grows by 16 bytes for a file, and for a large one by 32.
final class RestoreState: Sendable {
  /// The name of the folder.
  static let name: BytePath = ".fullbore-unseal"
  private static let logName: BytePath = "record"

  /// A version of a sealed file, and the path at which it is restored.
  struct Key: Sendable {
    fileprivate let digest: [UInt8]
    /// The name of the unfinished file.
    var fileName: BytePath { BytePath("\(Digest.hex(digest.prefix(16))).part") }
    /// Under this number the record has the stamp of the restored file.
    fileprivate var number: UInt64 { RestoreState.number(digest[..<8]) }
    /// Under this number the record has the count of synced bytes.
    fileprivate var syncedNumber: UInt64 { RestoreState.number(digest[8..<16]) }

    /// `version`: differs for each content.
    init(_ path: BytePath, version: [UInt8]) { digest = Digest.value(of: version + path.bytes, .sha256) }
  }

  let folder: RestoreFolder
  private let destination: RestoreFolder
  private let log: Descriptor
  /// The record.
  private let numbers: Mutex<[UInt64: UInt64]>

  /// Throws if another process restores into the same folder.
  init(in destination: RestoreFolder) throws(BlobError) {
    self.destination = destination
    folder = try destination.folder(Self.name, mode: 0o700)
    // Some network file systems have no locks.
    if flock(folder.number, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
      throw BlobError(.io, "\(destination.path): another 'fullbore unseal' writes into this folder: wait until it ends")
    }
    log = try folder.open(Self.logName, O_RDWR | O_CREAT | O_APPEND)
    Self.trim(log)
    numbers = Mutex(Self.read(log))
  }

  /// Removes a line that was not written to its end.
  private static func trim(_ log: Descriptor) {
    var status = stat()
    guard fstat(log.number, &status) == 0 else { return }
    let rest = Int(status.st_size) % lineCount
    if rest > 0 { _ = ftruncate(log.number, status.st_size - off_t(rest)) }
  }

  /// Each line has two numbers. The last line of a number counts.
  private static func read(_ log: Descriptor) -> [UInt64: UInt64] {
    var found: [UInt64: UInt64] = [:]
    var bytes = [UInt8](repeating: 0, count: lineCount << 10)
    var offset: off_t = 0
    while true {
      let count = bytes.withUnsafeMutableBytes { pread(log.number, $0.baseAddress, $0.count, offset) }
      if count <= 0 { return found }
      offset += off_t(count)
      for start in stride(from: 0, to: count - lineCount + 1, by: lineCount) {
        let words = String(decoding: bytes[start..<start + lineCount - 1], as: UTF8.self).split(separator: " ")
        if words.count == 2, let key = UInt64(words[0], radix: 16), let stamp = UInt64(words[1], radix: 16) {
          found[key] = stamp
        }
      }
    }
  }

  /// Bytes of a line.
  private static let lineCount = 34

  /// Whether an earlier run has restored this version, and the file has not changed here since.
  func isDone(_ key: Key, _ stamp: FileStamp) -> Bool {
    numbers.withLock { $0[key.number] } == Self.hash(of: stamp)
  }

  /// Losing a line is harmless: the file is compared by a later run.
  func noteDone(_ key: Key, _ stamp: FileStamp) { _ = append(key.number, Self.hash(of: stamp)) }

  /// Bytes at the beginning of the unfinished file that are on the disk.
  func synced(_ key: Key) -> Int64 {
    numbers.withLock { $0[key.syncedNumber].flatMap { Int64(exactly: $0) } ?? 0 }
  }

  /// Losing a line that records more bytes than before is harmless. A line that records fewer bytes is synced.
  func noteSynced(_ key: Key, _ count: Int64) throws(BlobError) {
    let isLess = count < synced(key)
    let isNoted = append(key.syncedNumber, UInt64(count))
    if isLess, !isNoted || fsync(log.number) != 0 {
      throw RestoreFolder.failure("write", folder.path.appending(Self.logName))
    }
  }

  /// Returns false, with `errno`, if the file does not take the line.
  private func append(_ key: UInt64, _ value: UInt64) -> Bool {
    numbers.withLock { numbers in
      let line = Array("\(Self.hex(key)) \(Self.hex(value))\n".utf8)
      let count = write(log.number, line, line.count)
      if count == line.count {
        numbers[key] = value
        return true
      }
      let problem = count < 0 ? errno : ENOSPC
      Self.trim(log)
      errno = problem
      return false
    }
  }

  /// Removes the folder with all that is unfinished in it.
  func remove() {
    if let open = OpenFolder(folder.path, "", follow: false) {
      while let name = open.nextName() { _ = name.withCString { unlinkat(folder.number, $0, 0) } }
    }
    _ = Self.name.withCString { unlinkat(destination.number, $0, AT_REMOVEDIR) }
  }

  private static func hash(of stamp: FileStamp) -> UInt64 {
    let validator = stamp.validator
    return number(Digest.value(of: Array("\(validator.version) \(validator.instance)".utf8), .sha256)[..<8])
  }

  private static func hex(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
