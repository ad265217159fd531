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

  /// `source` must have random access; the first `info` or `open` reads its header, and takes about a second for a
  /// passphrase.
  public init(_ source: any BlobSource, with identities: [SealIdentity]) {
    (self.source, self.identities) = (source, identities)
  }

  public var access: BlobAccess { source.access }

  public func closeUntilNeeded() { source.closeUntilNeeded() }

  /// Throws `.permission` if none of the identities opens the file, and `.unsupported` if it is no age file, or not one as
  /// it should be. The validator is that of the sealed bytes.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let info = try source.info(cancel)
    return try plain(info, try seal(cancel))
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if offset < 0 { throw BlobError(.outOfRange, "open an age file at byte \(offset)") }
    let seal = try seal(cancel)
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

  private func seal(_ cancel: Cancellation) throws(BlobError) -> FileSeal {
    if let seal = opened.value { return seal }
    if source.access == .sequential {
      throw BlobError(.unsupported, "open an age file: its source can be read only once")
    }
    let reader = try source.open(at: 0, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while true {
      let count = try reader.readChecked(into: buffer)
      bytes += buffer.prefix(count)
      if let seal = try FileSeal.open(bytes, with: identities) {
        opened.keep(seal)
        return seal
      }
      if count == 0 || bytes.count > SealHeader.most {
        throw ReadSealHeader.refused("\(count == 0 ? "it ends in" : "it has no end of") its header")
      }
    }
  }
}

/// The header is read once.
private final class OpenedSeal: Sendable {
  private let seal = Mutex<FileSeal?>(nil)
  var value: FileSeal? { seal.withLock { $0 } }
  func keep(_ value: FileSeal) { seal.withLock { $0 = value } }
}
