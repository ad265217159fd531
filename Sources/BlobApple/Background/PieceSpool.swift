import Blobs
import Platform
import Synchronization

/// A folder with the bodies of background requests, which the system reads from files. It never has more than `bound`
/// bytes: a piece is written only after room for it was reserved, and is deleted once its request has ended.
package final class PieceSpool: Sendable {
  package let folder: BytePath
  package let bound: Int64
  private let room: SpoolRoom
  /// The pieces that have room. A running task of an earlier process may have lost its piece, and has none then.
  private let pieces = Mutex<Set<TaskLabel>>([])
  /// Writes bytes to a descriptor, as `write(2)` does.
  private let write: @Sendable (Int32, UnsafeRawBufferPointer) -> Int

  private static let (finished, unfinished) = (".piece", ".writing")

  /// `folder` is created if it does not exist; files in it that are not pieces are left alone.
  package init(
    _ folder: BytePath, bound: Int64, _ wakeUp: WakeUp,
    write: @escaping @Sendable (Int32, UnsafeRawBufferPointer) -> Int = { Platform.write($0, $1.baseAddress, $1.count) }
  ) {
    self.folder = folder
    self.bound = bound
    self.write = write
    room = SpoolRoom(bound, wakeUp)
  }

  /// Waits until `bytes` more fit into the folder. Returns false if the task was cancelled.
  func reserve(_ bytes: Int64) async -> Bool { await room.reserve(bytes) }
  func release(_ bytes: Int64) { room.release(bytes) }

  func path(of label: TaskLabel) -> BytePath { Self.path(of: label, in: folder) }
  static func path(of label: TaskLabel, in folder: BytePath) -> BytePath {
    folder.appending(BytePath(label.text + finished))
  }

  /// Deletes what a killed process has left half-written, and returns the labels of the pieces, for which room is
  /// reserved. A piece that was cut or has another name does not count as one. This call blocks.
  func sweep() throws(BlobError) -> [TaskLabel] {
    try create()
    guard let listing = folder.withCString({ opendir($0) }) else {
      throw systemError(errno, "read the spool \(folder)")
    }
    defer { closedir(listing) }
    var pieces: [TaskLabel] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { BytePath($0.prefix { $0 != 0 }) }
      let path = folder.appending(name)
      guard let label = label(of: name) else { continue }
      if let label, size(of: path) == label.length {
        room.take(label.length ?? 0)
        pieces.append(label)
        self.pieces.withLock { _ = $0.insert(label) }
      } else {
        path.withCString { _ = unlink($0) }
      }
    }
    return pieces
  }

  /// nil: the file is foreign. nil inside: it is a piece that was not finished.
  private func label(of name: BytePath) -> TaskLabel?? {
    let text = name.description
    if text.hasSuffix(Self.finished) {
      return TaskLabel(String(text.dropLast(Self.finished.utf8.count))).map { .some($0) }
    }
    guard text.hasSuffix(Self.unfinished), TaskLabel(String(text.dropLast(Self.unfinished.utf8.count))) != nil else {
      return nil
    }
    return .some(nil)
  }

  /// Writes a body for which a task has reserved `most` bytes of room. Returns the label with the body's length.
  /// Nothing is left after a throw, and if the task does not wait any more, which also frees the room. This call
  /// blocks.
  func write(
    _ body: BlobSlice, as label: TaskLabel, atMost most: Int64, _ cancel: Cancellation, _ handover: PieceHandover
  ) throws(BlobError) -> TaskLabel {
    guard handover.begin() else {
      throw BlobError(.cancelled, "write a piece into the spool \(folder): cancelled")
    }
    do throws(BlobError) {
      let piece = try write(body, as: label, atMost: most, cancel)
      if !handover.end(piece) { giveBack(piece, room: most) }
      return piece
    } catch {
      if !handover.end(nil) { giveBack(nil, room: most) }
      throw error
    }
  }

  /// Returns the label with the body's length. Nothing is left after a throw.
  private func write(
    _ body: BlobSlice, as label: TaskLabel, atMost most: Int64, _ cancel: Cancellation
  ) throws(BlobError) -> TaskLabel {
    let path = folder.appending(BytePath(label.text + Self.unfinished))
    let descriptor = path.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) }
    if descriptor < 0 { throw systemError(errno, "write a piece into the spool \(folder)") }
    var label = label
    do throws(BlobError) {
      defer { close(descriptor) }
      label.length = try copy(body, to: descriptor, atMost: most, cancel)
      // After a power failure a file may have its length and not its bytes, and the system would send the wrong ones.
      if flushContent(descriptor) != 0 { throw systemError(errno, "write a piece into the spool \(folder)") }
    } catch {
      path.withCString { _ = unlink($0) }
      throw error
    }
    let name = self.path(of: label)
    guard path.withCString({ from in name.withCString { rename(from, $0) } }) == 0 else {
      let number = errno
      path.withCString { _ = unlink($0) }
      throw systemError(number, "rename a piece in the spool \(folder)")
    }
    pieces.withLock { [label] in _ = $0.insert(label) }
    return label
  }

  private func copy(
    _ body: BlobSlice, to descriptor: Int32, atMost most: Int64, _ cancel: Cancellation
  ) throws(BlobError) -> Int64 {
    var count: Int64 = 0
    try body.forEachChunk(cancel) { chunk throws(BlobError) in
      if Int64(chunk.count) > most - count {
        throw BlobError(.unsupported, "a piece for the spool \(folder) has more than the \(most) bytes reserved for it")
      }
      var rest = chunk
      while !rest.isEmpty {
        let written = write(descriptor, rest)
        if written < 0 && errno == EINTR { continue }
        if written < 0 { throw systemError(errno, "write a piece into the spool \(folder), byte \(count)") }
        count += Int64(written)
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(written))
      }
      try cancel.check("write a piece into the spool \(folder)")
    }
    return count
  }

  /// Whether the piece has exactly the bytes of `body`, which is read completely. This call blocks.
  func has(_ body: BlobSlice, as label: TaskLabel, _ cancel: Cancellation) throws(BlobError) -> Bool {
    let file = path(of: label).withCString { open($0, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) }
    defer { if file >= 0 { close(file) } }
    var (isSame, count) = (file >= 0, Int64(0))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: BlobSlice.chunk, alignment: 16)
    defer { buffer.deallocate() }
    try body.forEachChunk(cancel) { chunk throws(BlobError) in
      defer { count += Int64(chunk.count) }
      guard isSame else { return }
      var filled = 0
      while filled < chunk.count {
        let read = pread(file, buffer.baseAddress! + filled, chunk.count - filled, off_t(count) + off_t(filled))
        if read < 0 && errno == EINTR { continue }
        if read <= 0 { break }
        filled += read
      }
      isSame = filled == chunk.count && memcmp(buffer.baseAddress!, chunk.baseAddress!, filled) == 0
    }
    return isSame && count == label.length && size(of: path(of: label)) == count
  }

  /// Why the piece cannot be read by the system now; nil: it can. This call blocks.
  func problem(reading label: TaskLabel) -> BlobError? {
    let file = path(of: label).withCString { open($0, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) }
    if file < 0 { return systemError(errno, "read a piece in the spool \(folder)") }
    close(file)
    return nil
  }

  /// Deletes a piece, and frees its room if it has any.
  func remove(_ label: TaskLabel) {
    guard let length = label.length else { return }
    path(of: label).withCString { _ = unlink($0) }
    if pieces.withLock({ $0.remove(label) }) != nil { release(length) }
  }

  /// Deletes a piece that nobody uses, if there is one, and then frees the room that was reserved for it.
  func giveBack(_ label: TaskLabel?, room bytes: Int64) {
    if let label {
      path(of: label).withCString { _ = unlink($0) }
      pieces.withLock { _ = $0.remove(label) }
    }
    release(bytes)
  }

  private func create() throws(BlobError) {
    if folder.withCString({ mkdir($0, 0o700) }) != 0, errno != EEXIST {
      throw systemError(errno, "create the spool \(folder)")
    }
  }

  private func size(of path: BytePath) -> Int64? {
    var status = stat()
    guard path.withCString({ lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int64(status.st_size)
  }
}

extension BlobSlice {
  fileprivate static let chunk = 256 << 10

  /// Reads all bytes, in chunks that are valid during the call. This call blocks.
  fileprivate func forEachChunk(
    _ cancel: Cancellation, _ body: (UnsafeRawBufferPointer) throws(BlobError) -> Void
  ) throws(BlobError) {
    let reader = try open(cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = try reader.read(into: buffer), count > 0 {
      try body(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)))
    }
  }
}
