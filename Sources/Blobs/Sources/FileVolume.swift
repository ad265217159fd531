import Platform
import Synchronization

/// What the file system of a file is good for, to whom wants to know the file again after a restart.
public struct FileVolume: Sendable, Hashable {
  /// A file keeps its inode number, and its change time, for as long as it is the same: also when the machine was
  /// started again, or the disk was unplugged. Not so on FAT, network and FUSE file systems, where they are made up.
  public var keepsNumbers: Bool
  /// The file system's own id, which it has on every machine; nil: only its device number tells it from others.
  public var id: UInt64?
  /// A file may be mapped for writing, and the kernel grants a lease on it as if it were not: overlayfs, once the file
  /// is closed and only its mapping is left.
  var hidesMappings = false

  public init(keepsNumbers: Bool, id: UInt64? = nil) {
    self.keepsNumbers = keepsNumbers
    self.id = id
  }

  /// The one that `path` is on; nil where the system does not tell. Blocks, at the first file of a device.
  public init?(of path: BytePath, device: UInt64) {
    guard let volume = Self.known(device, { path.withCString { Self.ask(-1, $0) } }) else { return nil }
    self = volume
  }

  /// The one that an open file is on.
  init?(of descriptor: Int32, device: UInt64) {
    guard let volume = Self.known(device, { Self.ask(descriptor, nil) }) else { return nil }
    self = volume
  }

  private static let seen = Mutex<[UInt64: (volume: FileVolume, since: ContinuousClock.Instant)]>([:])

  /// Asked anew now and then: what is unplugged leaves its device number to the next one.
  private static func known(_ device: UInt64, _ ask: () -> FileVolume?) -> FileVolume? {
    let now = ContinuousClock.now
    let old = seen.withLock { $0[device] }
    if let old, now - old.since < .seconds(10) { return old.volume }
    // Of a file that is gone meanwhile nothing is learnt about its device.
    guard let volume = ask() else { return nil }
    seen.withLock { seen in
      if seen.count > 1000 { seen = [:] }
      seen[device] = (volume, now)
    }
    return volume
  }

  #if os(Linux)
    private static func ask(_ descriptor: Int32, _ path: UnsafePointer<CChar>?) -> FileVolume? {
      var (kind, id): (UInt64, UInt64) = (0, 0)
      if fb_file_system(descriptor, path, &kind, &id) != 0 { return nil }
      return FileVolume(kind: kind, id: id)
    }

    /// `kind` as in statfs(2). What is not known here is taken for a card.
    init(kind: UInt64, id: UInt64) {
      switch kind {
      // ext2 to ext4, btrfs, ZFS: the id is part of what is on the disk.
      case 0xEF53, 0x9123_683E, 0x2FC1_2FC1: self.init(keepsNumbers: true, id: id == 0 ? nil : id)
      // XFS, F2FS, bcachefs, tmpfs, overlayfs: it is the device number in another form, or nothing.
      case 0x5846_5342, 0xF2F5_2010, 0xCA45_1A4E, 0x0102_1994, 0x794C_7630: self.init(keepsNumbers: true)
      default: self.init(keepsNumbers: false)
      }
      hidesMappings = kind == 0x794C_7630
    }
  #else
    private static func ask(_ descriptor: Int32, _ path: UnsafePointer<CChar>?) -> FileVolume? { nil }
  #endif
}
