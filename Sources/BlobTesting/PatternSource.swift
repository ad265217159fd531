import Blobs
import Platform

/// A source of any length that needs no memory: the byte at offset `n` is a function of `n` and a seed.
///
/// Each block of 4 KiB begins with a unique stamp of 8 bytes and continues with a section of a common table, which the
/// stamp selects. This detects misplaced blocks, and filling or comparing is a `memcpy` or `memcmp`, which is fast in
/// debug builds too.
public struct PatternSource: BlobSource {
  /// The length in bytes.
  public let length: Int64
  /// Selects the pattern: sources with different seeds have different bytes.
  public let seed: UInt64
  public let access: BlobAccess
  /// The length and the version of the pattern.
  public let info: BlobInfo

  /// `knowsLength` false hides the length until the end is read.
  public init(
    length: Int64, seed: UInt64 = 0, access: BlobAccess = .random, knowsLength: Bool = true, preferredRead: Int = 0
  ) {
    self.length = length
    self.seed = seed
    self.access = access
    info = BlobInfo(
      length: knowsLength ? length : nil, validator: Validator(version: "pattern-\(seed)-\(length)"),
      preferredRead: preferredRead)
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at the pattern")
    return info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open the pattern")
    guard 0...length ~= offset else {
      throw BlobError(.outOfRange, "open the pattern at byte \(offset): it has \(length)")
    }
    return PatternReader(self, at: offset)
  }

  /// The byte at `offset`, which may be beyond the length.
  public func byte(at offset: Int64) -> UInt8 {
    var byte: UInt8 = 0
    withUnsafeMutableBytes(of: &byte) { fill($0, at: offset) }
    return byte
  }

  /// `count` bytes from `offset` on, for expectations that fit in memory.
  public func bytes(at offset: Int64 = 0, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
      fill(UnsafeMutableRawBufferPointer(buffer), at: offset)
      written = count
    }
  }

  /// Fills the whole of `buffer` with the bytes from `offset` on.
  public func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
    pieces(of: buffer.count, at: offset) { place, expected, count in
      memcpy(buffer.baseAddress! + place, expected, count)
      return true
    }
  }

  /// The offset of the first wrong byte in `buffer`; nil if all are right.
  public func verify(_ buffer: UnsafeRawBufferPointer, at offset: Int64) -> Int64? {
    var wrong: Int64?
    pieces(of: buffer.count, at: offset) { place, expected, count in
      let found = buffer.baseAddress! + place
      if memcmp(found, expected, count) == 0 { return true }
      let expected = UnsafeRawBufferPointer(start: expected, count: count)
      wrong =
        offset + Int64(place)
        + Int64(expected.indices.first { expected[$0] != found.load(fromByteOffset: $0, as: UInt8.self) }!)
      return false
    }
    return wrong
  }

  /// Calls `body` with position, expected bytes and their count for each piece until it returns false.
  private func pieces(of count: Int, at offset: Int64, _ body: (Int, UnsafeRawPointer, Int) -> Bool) {
    var place = 0
    while place < count {
      let at = offset + Int64(place)
      let within = Int(at & Int64(blockSize - 1))
      var stamp = SplitMix64.mixed(UInt64(bitPattern: at >> 12) ^ SplitMix64.mixed(seed))
      let goesOn: Bool
      if within < stampSize {
        let size = min(count - place, stampSize - within)
        goesOn = withUnsafeBytes(of: &stamp) { body(place, $0.baseAddress! + within, size) }
        place += size
      } else {
        let size = min(count - place, blockSize - within)
        goesOn = body(place, table.start + Int(truncatingIfNeeded: stamp & 0xFFFF) + within, size)
        place += size
      }
      if !goesOn { return }
    }
  }
}

private final class PatternReader: BlobReader {
  private let source: PatternSource
  private var offset: Int64

  init(_ source: PatternSource, at offset: Int64) {
    self.source = source
    self.offset = offset
  }

  var info: BlobInfo { source.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    precondition(!buffer.isEmpty)
    let count = Int(min(Int64(buffer.count), source.length - offset))
    source.fill(UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)), at: offset)
    offset += Int64(count)
    return count
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() {}
}

private let blockSize = 4096
private let stampSize = 8
private let table = Table()

/// 64 KiB of pseudorandom bytes plus one block, so that a block can begin at any of 65,536 positions.
private struct Table: @unchecked Sendable {
  // Safe to share: the memory is written only in `init` and then only read.
  let start: UnsafeRawPointer

  init() {
    let words = (65_536 + blockSize) / 8
    let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: words)
    for word in 0..<words { (memory + word).initialize(to: SplitMix64.mixed(UInt64(word) &+ 0x5EED)) }
    start = UnsafeRawPointer(memory)
  }
}
