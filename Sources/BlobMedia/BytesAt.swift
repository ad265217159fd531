import Blobs

/// Bytes of a source by their place, a few at a time, for readers of formats that lead from place to place.
///
/// The first bytes are read once and kept. The number of further reads is bounded, whatever the file claims: after the
/// last one everything is missing. One thread at a time.
final class BytesAt {
  /// Bytes of the beginning that are kept, which hold all that most pictures say of themselves.
  private static let kept = 64 << 10
  /// Bytes that one read gives at most.
  static let most = 256 << 10
  private let source: any BlobSource
  private let cancel: Cancellation
  private var readsLeft = 10_000
  private var head: [UInt8] = []
  /// Bytes of the file; of a source that does not tell, those that are kept.
  let end: Int64

  init(_ source: any BlobSource, _ cancel: Cancellation) {
    (self.source, self.cancel) = (source, cancel)
    // A source that does not tell its length fails, if it does, when it is read.
    let length = (try? source.info(cancel))?.length
    head = Self.read(source, at: 0, Self.kept, cancel) ?? []
    end = max(0, length ?? Int64(head.count))
  }

  /// As many of `count` bytes as there are, up to `most`; nil when none can be had.
  func callAsFunction(_ offset: Int64, _ count: Int) -> [UInt8]? {
    guard offset >= 0, offset < end, count > 0 else { return nil }
    let count = Int(min(Int64(min(count, Self.most)), end - offset))
    if offset + Int64(count) <= Int64(head.count) { return Array(head[Int(offset)..<Int(offset) + count]) }
    guard readsLeft > 0 else { return nil }
    readsLeft -= 1
    return Self.read(source, at: offset, count, cancel)
  }

  /// A number of at most 7 bytes, the highest first.
  func big(_ offset: Int64, _ count: Int) -> Int64? {
    guard let bytes = self(offset, count), bytes.count == count else { return nil }
    return Int64(number(bytes))
  }

  /// A number of at most 7 bytes, the lowest first.
  func little(_ offset: Int64, _ count: Int) -> Int64? {
    guard let bytes = self(offset, count), bytes.count == count else { return nil }
    return Int64(number(bytes.reversed()))
  }

  /// Whether this text is there.
  func holds(_ text: String, at offset: Int64) -> Bool {
    self(offset, text.utf8.count)?.elementsEqual(text.utf8) ?? false
  }

  private static func read(
    _ source: any BlobSource, at offset: Int64, _ count: Int, _ cancel: Cancellation
  ) -> [UInt8]? {
    // A picture whose date cannot be read has its file's time: no reason to fail.
    guard let reader = try? source.open(at: offset, cancel) else { return nil }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      while filled < count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count])
        guard let read = try? reader.read(into: rest), read > 0 else { return }
        filled += read
      }
    }
  }
}

/// Big-endian, eight bytes at most.
func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
