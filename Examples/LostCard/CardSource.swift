import Blobs
import Foundation

/// A file on a memory card. Access blocks, so this is a plain `BlobSource`.
struct CardSource: BlobSource {
  private let card: Card
  var access: BlobAccess { .random }

  init(_ card: Card) { self.card = card }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at the card")
    return try card.info()
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let info = try info(cancel)
    guard let length = info.length, 0...length ~= offset else {
      throw BlobError(.outOfRange, "open at byte \(offset)")
    }
    return Reader(card, info, at: Int(offset))
  }

  private final class Reader: BlobReader {
    let info: BlobInfo
    private let card: Card
    private var offset: Int

    init(_ card: Card, _ info: BlobInfo, at offset: Int) {
      self.card = card
      self.info = info
      self.offset = offset
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let bytes = try card.read(at: offset, upTo: buffer.count)
      buffer.copyBytes(from: bytes)
      offset += bytes.count
      return bytes.count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { if try card.info() != info { throw BlobError(.changed, "another card") } }
  }
}

/// Simulates a memory card and its slot.
final class Card: @unchecked Sendable {
  // `lock` guards the mutable state.
  private let lock = NSLock()
  private let bytes: [UInt8]
  private var accidents: [Int]
  private let isPutBack: Bool
  private let isSwapped: Bool
  private var isOut = false
  private var wasOut = false

  init(_ bytes: [UInt8], pulledOutAt accidents: [Int], isPutBack: Bool = true, isSwapped: Bool = false) {
    self.bytes = bytes
    self.accidents = accidents
    self.isPutBack = isPutBack
    self.isSwapped = isSwapped
  }

  /// The serial number and the length identify the card's file.
  func info() throws(BlobError) -> BlobInfo {
    let (isOut, wasOut) = lock.withLock { (self.isOut, self.wasOut) }
    if isOut { throw BlobError(.invalidated, "there is no card") }
    let serial = isSwapped && wasOut ? "card 2" : "card 1"
    return BlobInfo(length: Int64(bytes.count), validator: Validator(version: "\(serial), \(bytes.count)"))
  }

  func read(at offset: Int, upTo count: Int) throws(BlobError) -> ArraySlice<UInt8> {
    let isLost = lock.withLock {
      guard let next = accidents.first, offset >= next else { return isOut }
      accidents.removeFirst()
      (isOut, wasOut) = (!isPutBack, true)
      return true
    }
    // `.invalidated` means that the bytes may be available again after reopening.
    if isLost { throw BlobError(.invalidated, "the card was pulled out at byte \(offset)") }
    return bytes[offset..<min(offset + count, bytes.count)]
  }
}
