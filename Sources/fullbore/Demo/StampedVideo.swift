import BlobCrypto
import Blobs
import Platform

/// A film of any size that takes next to no room: the two boxes every player looks for, and nothing in the frames but a
/// stamp at every MiB with the byte it stands at, so that a misplaced block shows. ISO 14496-12 §4.2, §4.3, §8.1.1.
enum StampedVideo {
  static let interval: Int64 = 1 << 20

  static func write(_ path: BytePath, size: Int64) throws(DemoError) {
    precondition(size >= 64)
    let file = try FileWriter(path)
    let brand = Array("ftypisom".utf8) + bigEndian(UInt32(0x200)) + Array("isommp41".utf8)
    let type = bigEndian(UInt32(brand.count + 4)) + brand
    // A size of 1 says that the real one follows in 64 bits.
    let media = bigEndian(UInt32(1)) + Array("mdat".utf8) + bigEndian(size - Int64(type.count))
    try file.write(type + media, at: 0)
    var offset = interval
    while offset + 16 <= size {
      try file.write(stamp(at: offset), at: offset)
      offset += interval
    }
    try file.setLength(size)
  }

  /// 16 bytes: who wrote them, and where.
  static func stamp(at offset: Int64) -> [UInt8] { Array("FULLBORE".utf8) + bigEndian(offset) }

  /// The number of stamps, each where it belongs. Throws at the first that is not.
  static func check(_ path: BytePath) throws(DemoError) -> Int {
    let descriptor = path.withCString { openToRead($0) }
    if descriptor < 0 { throw DemoError("open \(path): \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    let size = Int64(try fileStatus(path).st_size)
    var count = 0
    var offset = interval
    while offset + 16 <= size {
      var found = [UInt8](repeating: 0, count: 16)
      let got = pread(descriptor, &found, 16, off_t(offset))
      if got != 16 || found != stamp(at: offset) {
        throw DemoError("\(path): at byte \(offset) stands another block: \(Digest.hex(found))")
      }
      count += 1
      offset += interval
    }
    return count
  }
}

private func openToRead(_ path: UnsafePointer<CChar>) -> Int32 { open(path, O_RDONLY | O_CLOEXEC) }
