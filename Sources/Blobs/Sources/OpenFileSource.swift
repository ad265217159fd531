import Synchronization

/// One file that stays open from its first use until the source is released, even if it is renamed meanwhile.
///
/// A rename, a change of permissions or another link is ignored where the system can confirm that nobody wrote to the
/// file. In all other cases, and after every write, truncation, replacement or deletion, it behaves like `FileSource`:
/// it throws `.changed` or `.truncated`, and readers never get a mixture of versions.
public struct OpenFileSource: BlobSource {
  /// The path that the source was created with; the file may have another name by now.
  public let path: BytePath
  private let holder: Holder
  public var access: BlobAccess { .random }

  /// - `found`: the stamp of the file when it was listed, if known.
  /// - `find`: called when the file is no longer at `path` at the first open; returns its current path, or nil if it is
  ///   nowhere. It may block. The returned path is verified.
  public init(
    _ path: BytePath, found: FileStamp? = nil,
    find: (@Sendable (Cancellation) throws(BlobError) -> BytePath?)? = nil
  ) {
    self.init(path, found: found, nil, find: find)
  }

  /// - `info`: the information derived from `found`, if the caller has computed it already.
  package init(
    _ path: BytePath, found: FileStamp?, _ info: BlobInfo?,
    find: (@Sendable (Cancellation) throws(BlobError) -> BytePath?)?
  ) {
    self.path = path
    holder = Holder(path, found, info, find)
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try holder.file(cancel).info }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try FileReader(holder.file(cancel), at: offset)
  }

  /// Closes the file, unless a reader uses it.
  public func closeUntilNeeded() { holder.close() }
}

private final class Holder: Sendable {
  private let path: BytePath
  private let found: FileStamp?
  private let info: BlobInfo?
  private let find: (@Sendable (Cancellation) throws(BlobError) -> BytePath?)?
  private let held = Mutex<OpenFile?>(nil)

  init(
    _ path: BytePath, _ found: FileStamp?, _ info: BlobInfo?,
    _ find: (@Sendable (Cancellation) throws(BlobError) -> BytePath?)?
  ) {
    self.path = path
    self.found = found
    self.info = info
    self.find = find
  }

  /// Returns the open file if its content is unchanged; otherwise opens the file again.
  func file(_ cancel: Cancellation) throws(BlobError) -> OpenFile {
    try cancel.check("open \(path)")
    if let file = held.withLock({ $0 }) {
      do throws(BlobError) {
        try file.check()
        return file
      } catch {
        held.withLock { if $0 === file { $0 = nil } }
      }
    }
    let opened = try search(cancel)
    return held.withLock { held in
      if let held { return held }
      held = opened
      return opened
    }
  }

  func close() {
    // The file is closed outside the lock.
    let file = held.withLock { $0.take() }
    withExtendedLifetime(file) {}
  }

  private func search(_ cancel: Cancellation) throws(BlobError) -> OpenFile {
    let here: Result<OpenFile, BlobError>
    do throws(BlobError) {
      here = .success(try OpenFile(path, watching: true, expecting: found, as: info, cancel))
    } catch {
      here = .failure(error)
    }
    // On other file systems a file cannot be identified by its inode number.
    guard let found, let find, found.volume?.keepsNumbers == true else { return try here.get() }
    switch here {
    case .success(let file) where file.stamp.isFile(of: found): return file
    case .failure(let error) where error.code != .notFound: throw error
    default: break
    }
    if let place = try find(cancel), case let file = try OpenFile(place, watching: true, cancel),
      file.stamp.isFile(of: found)
    {
      return file
    }
    return try here.get()
  }
}

extension FileStamp {
  /// Whether both stamps belong to the same file, whatever its content is. Only valid where `volume` keeps its numbers.
  fileprivate func isFile(of other: FileStamp) -> Bool { inode == other.inode && device == other.device }
}
