import Blobs
import Synchronization

/// The plaintext of a file of age, from any offset: of what a `SealedSource` gives, or `age` writes, without ASCII armor.
///
/// Each chunk is checked before a byte of it is returned, so a changed byte is never returned: the read throws `.io`. That
/// a file was cut is detected only by whoever reads its last chunk.
public struct UnsealedSource: BlobSource {
  private let source: any BlobSource
  private let identities: [SealIdentity]
  private let opened = OpenedSeal()

  /// The first `info` or `open` reads the header of `source`, and takes about a second for a passphrase. A source that is
  /// read once can be opened once, at its first byte.
  public init(_ source: any BlobSource, with identities: [SealIdentity]) {
    (self.source, self.identities) = (source, identities)
  }

  public var access: BlobAccess { source.access }

  public func closeUntilNeeded() { source.closeUntilNeeded() }

  /// Throws `.permission` if none of the identities opens the file, and `.unsupported` if it is no age file, or not one as
  /// it should be. The validator is that of the sealed bytes.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let info = try source.info(cancel)
    if let seal = opened.value { return try plain(info, seal) }
    if source.access == .sequential {
      throw BlobError(.unsupported, "open an age file: its source can be read only once")
    }
    return try plain(info, try begin(cancel).seal)
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if offset < 0 { throw BlobError(.outOfRange, "open an age file at byte \(offset)") }
    guard let seal = opened.value else {
      let begun = try begin(cancel)
      if offset > 0 { return try open(at: offset, begun.seal, cancel) }
      return ChunkReader(
        PrefixedReader(begun.rest, begun.reader), ChunkPass(.open, begun.seal, at: 0),
        try plain(begun.reader.info, begun.seal), length: begun.reader.info.length, asksBeforeEach: false)
    }
    return try open(at: offset, seal, cancel)
  }

  private func open(at offset: Int64, _ seal: FileSeal, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let whole = try plain(try source.info(cancel), seal).length
    if let whole, offset > whole {
      throw BlobError(.outOfRange, "open an age file at byte \(offset): it has \(whole)")
    }
    let pass = ChunkPass(.open, seal, at: offset)
    // An empty file has a chunk, which is checked as any other.
    let isAtEnd = offset == whole && offset > 0
    let reader = try source.open(at: isAtEnd ? (try source.info(cancel).length ?? 0) : pass.sourceOffset, cancel)
    let info = try plain(reader.info, seal)
    if isAtEnd {
      pass.end()
    } else if info.length == nil {
      try pass.settle(reader, asksBeforeEach: false)
    }
    return ChunkReader(reader, pass, info, length: reader.info.length, asksBeforeEach: false)
  }

  /// A digest of the header and the nonce, which no two contents share; nil: the header was not read yet.
  package var headerDigest: [UInt8]? { opened.value.map { Digest.value(of: $0.prefix, .sha256) } }

  private func plain(_ info: BlobInfo, _ seal: FileSeal) throws(BlobError) -> BlobInfo {
    guard let length = info.length else { return info }
    guard let plain = FileSeal.length(opening: length - Int64(seal.prefix.count)) else {
      throw BlobError(.io, "open an age file: it was cut, since no file has \(length) bytes when it is sealed")
    }
    var info = info
    info.length = plain
    info.preferredRead = 0
    return info
  }

  /// Reads the header. `rest`: the bytes after the nonce that were read with it.
  private func begin(
    _ cancel: Cancellation
  ) throws(BlobError) -> (seal: FileSeal, reader: any BlobReader, rest: ArraySlice<UInt8>) {
    let reader = try source.open(at: 0, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while true {
      let count = try reader.readChecked(into: buffer)
      bytes += buffer.prefix(count)
      let isEmpty = bytes.isEmpty && count == 0
      if isEmpty || !zip(bytes, ReadSealHeader.firstLine).allSatisfy({ $0 == $1 }) {
        var error = ReadSealHeader.refused("it is no age file of version 1")
        error.cause = NoAgeFile()
        throw error
      }
      if let seal = try FileSeal.open(bytes, with: identities) {
        opened.keep(seal)
        return (seal, reader, bytes.dropFirst(seal.prefix.count))
      }
      if count == 0 || bytes.count > SealHeader.most {
        throw ReadSealHeader.refused("\(count == 0 ? "it ends in" : "it has no end of") its header")
      }
    }
  }
}

/// The cause of the error for a source whose first bytes are not those of an age file.
package struct NoAgeFile: Error {
  package init() {}
}

/// Reads bytes that were read from a reader already, and then that reader.
private final class PrefixedReader: BlobReader {
  private var first: ArraySlice<UInt8>
  private let reader: any BlobReader

  init(_ first: ArraySlice<UInt8>, _ reader: any BlobReader) { (self.first, self.reader) = (first, reader) }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if first.isEmpty { return try reader.read(into: buffer) }
    let some = first.prefix(buffer.count)
    buffer.copyBytes(from: some)
    first = first.dropFirst(some.count)
    return some.count
  }

  // Its bytes are not at one place of a file.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}

/// The header is read once.
private final class OpenedSeal: Sendable {
  private let seal = Mutex<FileSeal?>(nil)
  var value: FileSeal? { seal.withLock { $0 } }
  func keep(_ value: FileSeal) { seal.withLock { $0 = value } }
}
