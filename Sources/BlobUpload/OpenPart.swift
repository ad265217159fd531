import Blobs
import Synchronization

/// The next bytes of a source of unknown length: as many as requested, or fewer if the source ends.
///
/// A slice of a fixed length would report the end as a truncation. The part is opened at its first byte each time it is
/// sent. It also ends where `room` is 0.
final class OpenPart: BlobSource {
  private let source: any BlobSource
  private let start: Int64
  private let length: Int64
  private let room: @Sendable (Int64) -> Int64
  private let furthest: Atomic<Int64>
  private let ending = Atomic<Int64>(-1)

  /// `length` nil: all bytes up to the end of the source. `room`: the number of bytes that may currently be read from
  /// an offset.
  init(
    _ source: any BlobSource, from start: Int64, length: Int64?,
    room: @escaping @Sendable (Int64) -> Int64 = { _ in .max }
  ) {
    self.source = source
    self.start = start
    self.length = length ?? .max - start
    self.room = room
    furthest = Atomic(start)
  }

  /// Offset after the last byte that was read.
  var reached: Int64 { furthest.load(ordering: .relaxed) }
  /// Offset at which the source ends; nil: the end was not found within this part.
  var end: Int64? {
    let end = ending.load(ordering: .relaxed)
    return end < 0 ? nil : end
  }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(self, try source.open(at: offset, cancel), at: offset)
  }

  private final class Reader: BlobReader {
    private let part: OpenPart
    private let reader: any BlobReader
    private var offset: Int64

    init(_ part: OpenPart, _ reader: any BlobReader, at offset: Int64) {
      self.part = part
      self.reader = reader
      self.offset = offset
    }

    var info: BlobInfo { BlobInfo(length: nil, validator: reader.info.validator) }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let left = min(part.start + part.length - offset, part.room(offset))
      if left <= 0 { return 0 }
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: left))))
      offset += Int64(count)
      if count == 0 { part.ending.store(offset, ordering: .relaxed) }
      part.furthest.max(offset, ordering: .relaxed)
      return count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}

extension BlobSource {
  /// The number of bytes read from `start` to the end of an `OpenPart`; nil: the end was not found, or this is a source
  /// of another kind.
  func lengthRead(from start: Int64) -> Int64? {
    guard let open = self as? OpenPart, open.end != nil else { return nil }
    return open.reached - start
  }
}
