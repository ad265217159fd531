import BlobCrypto
import BlobServer
import BlobUpload
import Blobs
import Platform

/// Restores one file at a time from what was sealed. All of it blocks.
struct FileRestore: Sendable {
  enum Outcome: Sendable, Hashable {
    case restored
    /// The file was not sealed.
    case copied
    /// A file with the same bytes was there.
    case same
  }

  let destination: RestoreFolder
  let state: RestoreState
  let identities: [SealIdentity]
  let overwrites: Bool
  /// Files that are not sealed are copied as they are.
  let copiesUnsealed: Bool
  /// Called with the number of bytes that were just read.
  let noteRead: @Sendable (Int) -> Void

  /// A content that is restored, and its reader at the first byte.
  private struct Content {
    var source: any BlobSource
    var reader: any BlobReader
    /// nil: it cannot be told from other versions, so that nothing goes on later.
    var version: [UInt8]?
    var isSealed: Bool
  }

  /// The path below the destination at which a sealed file is restored.
  static func path(of sealed: BytePath) -> BytePath {
    let ending = Sealing.ending.bytes
    guard sealed.name.bytes.count > ending.count, sealed.bytes.suffix(ending.count).elementsEqual(ending) else {
      return sealed
    }
    return BytePath(sealed.bytes.dropLast(ending.count))
  }

  /// `path`: of the sealed file, as it is or as it was before its name was sealed. `again`: another source of it, for a file
  /// that is not sealed: what was read to find that out cannot be read again where a server gives no ranges. `modified`: the
  /// time that it gets; nil: that which the source has.
  func restore(
    _ path: BytePath, from source: any BlobSource, again: any BlobSource, modified: Int64? = nil, _ cancel: Cancellation
  ) throws(BlobError) -> Outcome {
    var content = try open(source, again: again, cancel)
    let path = content.isSealed ? Self.path(of: path) : path
    let folder = try destination.folder(path.folder)
    let key = content.version.map { RestoreState.Key(path, version: $0) }
    if let status = try folder.status(path.name) {
      if try isSame(content, status, path.name, in: folder, key, cancel) { return .same }
      if !overwrites {
        throw BlobError(
          .io,
          "\(folder.path.appending(path.name)) has other bytes: --overwrite replaces it, or unseal into another folder")
      }
      if content.source.access == .random {
        content.reader = try content.source.open(at: 0, cancel)
      } else {
        content = try open(again, again: again, cancel)
      }
    }
    let file = try PartialFile(key, of: folder.path.appending(path.name), in: state)
    do {
      try write(&content, to: file, cancel)
      try file.publish(modified ?? content.reader.info.modified, as: path.name, in: folder, replacing: overwrites)
    } catch {
      file.discardUnknown()
      throw error
    }
    if let key { state.noteDone(key, try stamp(of: file.descriptor, folder.path)) }
    return content.isSealed ? .restored : .copied
  }

  private func open(
    _ source: any BlobSource, again: any BlobSource, _ cancel: Cancellation
  ) throws(BlobError) -> Content {
    let unsealed = UnsealedSource(source, with: identities)
    do throws(BlobError) {
      let reader = try unsealed.open(at: 0, cancel)
      return Content(source: unsealed, reader: reader, version: unsealed.headerDigest, isSealed: true)
    } catch {
      guard error.cause is NoAgeFile else { throw error }
      if !copiesUnsealed {
        throw BlobError(
          .unsupported, "it is not sealed (no file of age, version 1): --copy-unsealed copies such files as they are",
          cause: error.cause)
      }
      let reader = try again.open(at: 0, cancel)
      let version = reader.info.validator.map { Array("\($0.version) \($0.instance)".utf8) }
      return Content(source: again, reader: reader, version: version, isSealed: false)
    }
  }

  /// Whether the file that has the name already is the one that would be restored.
  private func isSame(
    _ content: Content, _ status: stat, _ name: BytePath, in folder: RestoreFolder, _ key: RestoreState.Key?,
    _ cancel: Cancellation
  ) throws(BlobError) -> Bool {
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw BlobError(
        .io,
        "\(folder.path.appending(name)) is a folder, a symbolic link or no file at all, and is not replaced: "
          + "rename it, or unseal into another folder")
    }
    if let key, state.isDone(key, FileStamp(status, at: folder.path)) { return true }
    let length = content.reader.info.length
    if let length, length != Int64(status.st_size) { return false }
    let file = try folder.open(name, O_RDONLY)
    guard try areEqual(content.reader, file, folder.path.appending(name), cancel) else { return false }
    try content.reader.finish()
    if let key { state.noteDone(key, try stamp(of: file, folder.path)) }
    return true
  }

  private func areEqual(
    _ reader: any BlobReader, _ file: Descriptor, _ path: BytePath, _ cancel: Cancellation
  ) throws(BlobError) -> Bool {
    let (ours, theirs) = (Self.buffer(), Self.buffer())
    defer {
      ours.deallocate()
      theirs.deallocate()
    }
    var offset: Int64 = 0
    while true {
      try cancel.check("compare \(path)")
      let count = try reader.readChecked(into: theirs)
      noteRead(count)
      var found = 0
      while found < max(1, count) {
        let room = UnsafeMutableRawBufferPointer(rebasing: ours[found...].prefix(max(1, count) - found))
        let got = pread(file.number, room.baseAddress, room.count, off_t(offset) + off_t(found))
        if got < 0, errno == EINTR { continue }
        if got < 0 { throw RestoreFolder.failure("read", path) }
        if got == 0 { break }
        found += got
      }
      if count == 0 { return found == 0 }
      if found < count || memcmp(ours.baseAddress!, theirs.baseAddress!, count) != 0 { return false }
      offset += Int64(count)
    }
  }

  /// Writes the bytes that an earlier run has not written. If it throws, what was written is kept for a later run.
  private func write(
    _ content: inout Content, to file: PartialFile, _ cancel: Cancellation
  ) throws(BlobError) {
    let length = content.reader.info.length
    var offset = content.source.access == .random ? try file.kept(of: length) : 0
    try file.cut(at: offset)
    if offset > 0 { content.reader = try content.source.open(at: offset, cancel) }
    let buffer = Self.buffer()
    defer { buffer.deallocate() }
    var kept = offset
    do throws(BlobError) {
      while true {
        try cancel.check("restore \(file.path)")
        let count = try content.reader.readChecked(into: buffer)
        if count == 0 { break }
        noteRead(count)
        try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset, of: length)
        offset += Int64(count)
        if offset - kept >= PartialFile.syncedAtOnce {
          try file.keep(offset)
          kept = offset
        }
      }
      try content.reader.finish()
    } catch {
      // A later run then reads more again.
      try? file.keep(offset)
      throw error
    }
    if let length, length != offset {
      throw BlobError(.truncated, "\(file.path): the source ended at byte \(offset) of \(length)")
    }
  }

  private func stamp(of file: Descriptor, _ path: BytePath) throws(BlobError) -> FileStamp {
    var status = stat()
    if fstat(file.number, &status) != 0 { throw RestoreFolder.failure("look at", path) }
    return FileStamp(status, at: path)
  }

  private static func buffer() -> UnsafeMutableRawBufferPointer { .allocate(byteCount: 256 << 10, alignment: 16) }
}
