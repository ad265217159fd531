import Platform

/// The numbers that distinguish one version of a file from another.
public struct FileStamp: Sendable, Hashable {
  /// The number of the device that contains the file.
  public var device: UInt64
  /// The number of the file on its device.
  public var inode: UInt64
  /// The length of the file in bytes.
  public var size: Int64
  /// Modification time in nanoseconds since 1970. Times before 1677 or after 2262 are clamped to the range of Int64.
  public var modified: Int64
  /// Change time, in the same unit as `modified`; also changes with mode, owner or links.
  public var changed: Int64
  /// nil if the file system is unknown: then its inode numbers and change times are not trusted across restarts.
  package var volume: FileVolume?

  /// Creates a stamp of given numbers, without a file system. Times are in nanoseconds since 1970.
  public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  /// Creates a stamp of what `stat` returned, without a volume.
  public init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    #if os(Linux)
      modified = nanoseconds(status.st_mtim)
      changed = nanoseconds(status.st_ctim)
    #else
      modified = nanoseconds(status.st_mtimespec)
      changed = nanoseconds(status.st_ctimespec)
    #endif
  }

  /// Like `init(_:)`, with the file system of `path`. Blocks for the first file of a device.
  public init(_ status: stat, at path: BytePath) {
    self.init(status)
    volume = FileVolume(of: path, device: device)
  }

  init(_ status: stat, _ descriptor: Int32) {
    self.init(status)
    volume = FileVolume(of: descriptor, device: device)
  }

  /// A different size or modification time means different content; a difference in the other numbers only makes it
  /// uncertain. A file system with an id of its own is identified by that id, whatever its device number is.
  public var validator: Validator {
    Validator(
      version: String(unsafeUninitializedCapacity: 2 * Self.mostDigits) { text in
        let end = text.put(UInt64(size), from: 0)
        return text.put(modified, from: text.put("-", from: end))
      },
      instance: String(unsafeUninitializedCapacity: 4 * Self.mostDigits) { text in
        var end = 0
        if let id = volume?.id {
          end = text.put(hexadecimal: id, from: text.put("volume ", from: 0))
        } else {
          end = text.put(device, from: 0)
        }
        end = text.put(inode, from: text.put("-", from: end))
        return text.put(changed, from: text.put("-", from: end))
      })
  }

  /// Most characters of a number, including its sign and the text before it.
  private static let mostDigits = 24

  /// The length, the validator and the modification time of the file, for a source.
  public var info: BlobInfo {
    BlobInfo(
      length: size, validator: validator, instanceLasts: volume?.keepsNumbers ?? false, modified: modified)
  }

  /// Nanoseconds from `now` (since 1970) until a further write is sure to change the file's times; 0 if enough time has
  /// passed since the last change. A time in the future says nothing about the next write, so it is ignored.
  package func unsettled(at now: Int64) -> Int64 {
    let step = step
    var age = step
    if modified <= now { age = min(age, now.subtractingClamped(modified)) }
    if changed <= now { age = min(age, now.subtractingClamped(changed)) }
    return step - age
  }

  /// Whether the file was written or touched so recently that data written through a mapping may not be on the disk
  /// yet. The kernel writes pages back once they have been dirty for 30 seconds, and a slow disk needs time for that. A
  /// time in the future, after the clock was set back, may be recent, so it counts as recent.
  func isRecent(at now: Int64) -> Bool {
    now.subtractingClamped(max(modified, changed)) < 120_000_000_000
  }

  /// The minimum distance between two writes that get different times. The kernel's clock advances at least every 10
  /// ms. A file system that stores whole seconds (2 on FAT) is recognized by both times being whole seconds: setting a
  /// modification time explicitly does not affect the change time.
  private var step: Int64 {
    let second: Int64 = 1_000_000_000
    if modified % second != 0 || changed % second != 0 { return 20_000_000 }
    return modified % (2 * second) == 0 && changed % (2 * second) == 0 ? 2 * second : second
  }

  package static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return nanoseconds(time)
  }
}

extension Validator {
  /// Whether both are validators of files on the same file system, as far as its number or id tells.
  package func isOnSameVolume(as other: Validator) -> Bool {
    guard let end = instance.lastIndex(of: "-"), let start = instance[..<end].lastIndex(of: "-") else { return false }
    let volume = instance[...start]
    return other.instance.hasPrefix(volume)
  }

  /// Whether two instances have the same inode and change time although their device numbers may differ. Only for file
  /// systems with lasting inode numbers: a device without an id of its own may get another number after a restart.
  package func hasSameNumbers(as other: Validator) -> Bool {
    let (mine, theirs) = (
      instance.split(separator: "-", maxSplits: 1), other.instance.split(separator: "-", maxSplits: 1)
    )
    guard mine.count == 2, theirs.count == 2, !mine[0].hasPrefix("volume"), !theirs[0].hasPrefix("volume") else {
      return false
    }
    return mine[1] == theirs[1]
  }
}

/// File systems may report any numbers here: times beyond the range of Int64, and more nanoseconds than a second has.
private func nanoseconds(_ time: timespec) -> Int64 {
  let seconds = Int64(time.tv_sec)
  let (whole, isBeyond) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
  let (sum, overflows) = whole.addingReportingOverflow(Int64(time.tv_nsec))
  if !isBeyond && !overflows { return sum }
  return (isBeyond ? seconds : Int64(time.tv_nsec)) < 0 ? .min : .max
}

/// Formats numbers in place, without temporary strings: every file needs two of these texts.
extension UnsafeMutableBufferPointer<UInt8> {
  /// Each function returns the index after the text it wrote.
  fileprivate func put(_ text: StaticString, from start: Int) -> Int {
    for index in 0..<text.utf8CodeUnitCount { self[start + index] = text.utf8Start[index] }
    return start + text.utf8CodeUnitCount
  }

  fileprivate func put(_ number: Int64, from start: Int) -> Int {
    put(number.magnitude, from: number < 0 ? put("-", from: start) : start)
  }

  fileprivate func put(_ number: UInt64, from start: Int) -> Int {
    var (rest, end) = (number / 10, start + 1)
    while rest > 0 { (rest, end) = (rest / 10, end + 1) }
    var place = end
    rest = number
    repeat {
      place -= 1
      self[place] = UInt8(truncatingIfNeeded: rest % 10) + 48
      rest /= 10
    } while rest > 0
    return end
  }

  fileprivate func put(hexadecimal number: UInt64, from start: Int) -> Int {
    var (rest, end) = (number, start)
    repeat {
      let digit = UInt8(truncatingIfNeeded: rest & 15)
      self[end] = digit < 10 ? digit + 48 : digit + 87
      rest >>= 4
      end += 1
    } while rest > 0
    self[start..<end].reverse()
    return end
  }
}
