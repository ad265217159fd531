import Synchronization

/// One file, whatever it is called meanwhile: from when it is first opened until the source is gone it is held open.
///
/// A rename, other rights or another link change nothing, where the system vouches that nobody wrote to it; else, and
/// for every write, truncation, replacement or deletion, it is as with `FileSource`: `.changed` or `.truncated`, never a
/// mixture.
public struct HeldFileSource: BlobSource {
  public let path: BytePath
  private let holder: Holder
  public var access: BlobAccess { .random }

  /// - `found`: the file as it was found, where that is known.
  /// - `find`: asked where that file is now, if it is not at `path` any more when it is first opened; nil: it is
  ///   nowhere. Blocks; what it says is not believed, but looked at.
  public init(
    _ path: BytePath, found: FileStamp? = nil,
    find: (@Sendable (Cancellation) throws(BlobError) -> BytePath?)? = nil
  ) {
    self.init(path, found: found, nil, find: find)
  }

  /// - `info`: what `found` says, where that has been put together already.
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

  /// The file that is held, if its content is what it was; else what is to be found now.
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

  private func search(_ cancel: Cancellation) throws(BlobError) -> OpenFile {
    let here: Result<OpenFile, BlobError>
    do throws(BlobError) {
      here = .success(try OpenFile(path, watching: true, expecting: found, as: info, cancel))
    } catch {
      here = .failure(error)
    }
    // Elsewhere a file has no number to be known by.
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
  /// The same file, whatever is in it. Where `volume` keeps its numbers.
  fileprivate func isFile(of other: FileStamp) -> Bool { inode == other.inode && device == other.device }
}
