import Platform
import Synchronization

/// A regular file that has content although its size is 0, such as files in /proc and /sys, and in some FUSE and
/// network file systems.
///
/// The system generates the content while it is read. So it is read once, in order, and its length is known only at the
/// end. Opening it at byte 0 always starts anew.
public struct UnsizedFileSource: BlobSource {
  /// The path of the file.
  public let path: BytePath
  public var access: BlobAccess { .sequential }

  private let modified: Int64?
  private let latest = LatestReading()

  /// `modified`: time of the last write in nanoseconds since 1970; nil if the file system does not report it.
  public init(_ path: BytePath, modified: Int64? = nil) {
    self.path = path
    self.modified = modified
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at \(path)")
    return BlobInfo(length: nil, modified: modified)
  }

  /// Opens at byte 0, or where the last reader stopped; throws `.outOfRange` elsewhere.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reading = try latest.reading(at: offset) { () throws(BlobError) in
      OpenReading(try OpenFile.open(path, cancel).descriptor)
    }
    return UnsizedFileReader(reading, try reading.source.open(at: offset, cancel))
  }

  /// Whether the regular file at `path`, whose size is 0, nevertheless has content. Opens it and reads a byte, so it
  /// blocks, for up to a minute if another program holds a lease on the file. `cancel` ends that wait.
  ///
  /// Returns false for a file that has a size by now: somebody is writing it, and it is an ordinary file. Throws
  /// `.unsupported` if `path` is not a regular file, for example if a pipe or a device has replaced it.
  public static func isNeeded(
    for path: BytePath, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> Bool {
    let descriptor = try OpenFile.open(path, cancel).descriptor
    defer { close(descriptor) }
    return try OpenFile.hasUnsizedContent(descriptor, path)
  }
}

/// The descriptor at which reading continues. One reader at a time, as for any sequential source.
private final class LatestReading: Sendable {
  private let latest = Mutex<OpenReading?>(nil)

  func reading(
    at offset: Int64, _ begin: () throws(BlobError) -> OpenReading
  ) throws(BlobError) -> OpenReading {
    if offset > 0, let reading = latest.withLock({ $0 }) { return reading }
    let reading = try begin()
    latest.withLock { $0 = reading }
    return reading
  }
}

/// An open descriptor, which is closed once neither the source nor a reader needs it.
private final class OpenReading: Sendable {
  let source: DescriptorSource
  private let descriptor: Int32

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    source = DescriptorSource(descriptor)
  }

  deinit { close(descriptor) }
}

private final class UnsizedFileReader: BlobReader {
  private let reading: OpenReading
  private let reader: any BlobReader

  init(_ reading: OpenReading, _ reader: any BlobReader) {
    self.reading = reading
    self.reader = reader
  }

  var info: BlobInfo { reader.info }
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) { try reader.finish() }
}
