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

  /// `path`: of the sealed file.
  func restore(_ path: BytePath, from source: any BlobSource, _ cancel: Cancellation) throws(BlobError) -> Outcome {
    var content = try open(source, cancel)
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
      content.reader = try content.source.open(at: 0, cancel)
    }
    let name = key?.fileName ?? BytePath("\(UInt64.random(in: .min ... .max)).part")
    let file = try state.folder.open(name, O_RDWR | O_CREAT)
    do {
      try write(&content, to: file, goesOn: key != nil, folder.path.appending(path.name), cancel)
      try publish(file, name, content.reader.info.modified, as: path.name, in: folder)
    } catch {
      if key == nil { _ = name.withCString { unlinkat(state.folder.number, $0, 0) } }
      throw error
    }
    if let key { state.noteDone(key, try stamp(of: file, folder.path)) }
    return content.isSealed ? .restored : .copied
  }

  private func open(_ source: any BlobSource, _ cancel: Cancellation) throws(BlobError) -> Content {
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
      let reader = try source.open(at: 0, cancel)
      let version = reader.info.validator.map { Array("\($0.version) \($0.instance)".utf8) }
      return Content(source: source, reader: reader, version: version, isSealed: false)
    }
  }

  /// Whether the file that has the name already is the one that would be restored.
  private func isSame(
    _ content: Content, _ status: stat, _ name: BytePath, in folder: RestoreFolder, _ key: RestoreState.Key?,
    _ cancel: Cancellation
  ) throws(BlobError) -> Bool {
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw BlobError(
        .io, "\(folder.path.appending(name)) is a folder, a symbolic link or no file at all, and is not replaced")
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

  /// Writes the bytes that an earlier run has not written. Only whole files of one version get here to an end.
  private func write(
    _ content: inout Content, to file: Descriptor, goesOn: Bool, _ path: BytePath, _ cancel: Cancellation
  ) throws(BlobError) {
    var offset: Int64 = 0
    var status = stat()
    if fstat(file.number, &status) != 0 { throw RestoreFolder.failure("look at", path) }
    // The last chunk is opened again, so that the end of the file is always checked.
    let chunk = Int64(FileSeal.chunk)
    let written = (max(1, Int64(status.st_size)) - 1) / chunk * chunk
    if goesOn, written > 0, written <= content.reader.info.length ?? 0, content.source.access == .random {
      content.reader = try content.source.open(at: written, cancel)
      offset = written
    }
    if ftruncate(file.number, off_t(offset)) != 0 { throw RestoreFolder.failure("write", path) }
    let buffer = Self.buffer()
    defer { buffer.deallocate() }
    while true {
      try cancel.check("restore \(path)")
      let count = try content.reader.readChecked(into: buffer)
      if count == 0 { break }
      noteRead(count)
      var done = 0
      while done < count {
        let put = pwrite(file.number, buffer.baseAddress! + done, count - done, off_t(offset) + off_t(done))
        if put < 0, errno == EINTR { continue }
        if put <= 0 { throw Self.writeFailure(path, file, at: offset, of: content.reader.info.length) }
        done += put
      }
      offset += Int64(count)
    }
    try content.reader.finish()
    if let length = content.reader.info.length, length != offset {
      throw BlobError(.truncated, "\(path): the source ended at byte \(offset) of \(length)")
    }
  }

  private func publish(
    _ file: Descriptor, _ partial: BytePath, _ modified: Int64?, as name: BytePath, in folder: RestoreFolder
  ) throws(BlobError) {
    let path = folder.path.appending(name)
    if let modified { Self.setTime(file, modified) }
    if fsync(file.number) != 0 { throw Self.writeFailure(path, file, at: nil, of: nil) }
    let from = state.folder.number
    let result = partial.withCString { old in
      name.withCString { new in
        overwrites ? renameat(from, old, folder.number, new) : renameNew(from, old, folder.number, new)
      }
    }
    if result != 0, errno == EEXIST {
      throw BlobError(.io, "\(path): another program has just made a file of that name, which is not replaced")
    }
    if result != 0 { throw RestoreFolder.failure("give the restored file its name", path) }
    try folder.sync()
  }

  private func stamp(of file: Descriptor, _ path: BytePath) throws(BlobError) -> FileStamp {
    var status = stat()
    if fstat(file.number, &status) != 0 { throw RestoreFolder.failure("look at", path) }
    return FileStamp(status, at: path)
  }

  /// A file system that cannot keep the time keeps another one.
  private static func setTime(_ file: Descriptor, _ nanoseconds: Int64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let time = timespec(
      tv_sec: time_t(rest < 0 ? seconds - 1 : seconds), tv_nsec: Int(rest < 0 ? rest + 1_000_000_000 : rest))
    _ = futimens(file.number, [time, time])
  }

  /// The error for `errno`, with the room that is left.
  private static func writeFailure(
    _ path: BytePath, _ file: Descriptor, at offset: Int64?, of length: Int64?
  ) -> BlobError {
    let number = errno == 0 ? ENOSPC : errno
    var message = "write \(path): \(String(cString: strerror(number)))"
    if let offset { message += " at byte \(offset)\(length.map { " of \($0)" } ?? "")" }
    var volume = statvfs()
    if isFull(number), fstatvfs(file.number, &volume) == 0 {
      let free = Int64(
        clamping: UInt64(volume.f_bavail).multipliedReportingOverflow(by: UInt64(volume.f_frsize)).partialValue)
      message +=
        "; \(Quantity.text(bytes: free)) are free there. Make room, then run the same command again: it goes on"
    }
    return BlobError(.io, message, errno: number)
  }

  /// Whether nothing else can be written either.
  static func isFull(_ number: Int32) -> Bool { [ENOSPC, EDQUOT, EROFS].contains(number) }

  private static func buffer() -> UnsafeMutableRawBufferPointer { .allocate(byteCount: 256 << 10, alignment: 16) }
}
