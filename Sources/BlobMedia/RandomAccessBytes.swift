import Blobs

/// Random access to the bytes of a source, for parsers of formats that contain offsets.
///
/// The first bytes are read once and cached. The number of further reads is limited, so that a malicious file cannot
/// cause endless work; after the limit, every access returns nil. Not thread-safe.
final class RandomAccessBytes {
  /// Bytes at the start that are cached. They contain the metadata of most pictures.
  private static let kept = 64 << 10
  /// Maximum of bytes that one access returns.
  static let most = 256 << 10
  private let source: any BlobSource
  private let cancel: Cancellation
  private var readsLeft = 10_000
  private var head: [UInt8] = []
  /// Length of the file in bytes; for a source of unknown length, the number of cached bytes.
  let end: Int64

  init(_ source: any BlobSource, _ cancel: Cancellation) {
    (self.source, self.cancel) = (source, cancel)
    // An error of `info` is ignored: a source that cannot be read fails again in `read`.
    let length = (try? source.info(cancel))?.length
    head = Self.read(source, at: 0, Self.kept, cancel) ?? []
    end = max(0, length ?? Int64(head.count))
  }

  /// Up to `count` bytes, limited by `most` and the end of the file; nil if none can be read.
  func callAsFunction(_ offset: Int64, _ count: Int) -> [UInt8]? {
    guard offset >= 0, offset < end, count > 0 else { return nil }
    let count = Int(min(Int64(min(count, Self.most)), end - offset))
    if offset + Int64(count) <= Int64(head.count) { return Array(head[Int(offset)..<Int(offset) + count]) }
    guard readsLeft > 0 else { return nil }
    readsLeft -= 1
    return Self.read(source, at: offset, count, cancel)
  }

  /// A big-endian number of at most 7 bytes.
  func big(_ offset: Int64, _ count: Int) -> Int64? {
    guard let bytes = self(offset, count), bytes.count == count else { return nil }
    return Int64(number(bytes))
  }

  /// A little-endian number of at most 7 bytes.
  func little(_ offset: Int64, _ count: Int) -> Int64? {
    guard let bytes = self(offset, count), bytes.count == count else { return nil }
    return Int64(number(bytes.reversed()))
  }

  /// Whether the bytes at `offset` are this text.
  func holds(_ text: String, at offset: Int64) -> Bool {
    self(offset, text.utf8.count)?.elementsEqual(text.utf8) ?? false
  }

  private static func read(
    _ source: any BlobSource, at offset: Int64, _ count: Int, _ cancel: Cancellation
  ) -> [UInt8]? {
    // Errors are ignored: a picture whose capture date cannot be read gets the modification time of its file.
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

/// Decodes a big-endian number of at most eight bytes.
func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
