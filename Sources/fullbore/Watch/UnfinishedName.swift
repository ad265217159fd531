import Blobs

/// Names of temporary files that other programs rename when the file is complete: browsers, download and copy programs,
/// editors and rsync.
enum UnfinishedName {
  /// Compared without regard to case.
  static let endings = [
    ".part", ".partial", ".filepart", ".crdownload", ".download", ".opdownload", ".tmp", ".temp", "~",
  ]

  /// Why a watch leaves such a file out.
  static let reason = "its name is that of a file in the making; it is sent when it is renamed"

  static func matches(_ name: BytePath) -> Bool {
    let small = name.bytes.map { (65...90).contains($0) ? $0 + 32 : $0 }
    if endings.contains(where: { small.count > $0.utf8.count && small.suffix($0.utf8.count).elementsEqual($0.utf8) }) {
      return true
    }
    return small.starts(with: "~$".utf8) || isOfRsync(name.bytes) || SetAsideName.original(of: name) != nil
  }

  /// `.NAME.XXXXXX`, with the random characters of `mkstemp`.
  private static func isOfRsync(_ name: [UInt8]) -> Bool {
    let dot = UInt8(ascii: ".")
    guard name.count > 8, name[0] == dot, name[name.count - 7] == dot else { return false }
    return name.suffix(6).allSatisfy { byte in
      (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
  }
}
