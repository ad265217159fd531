import Blobs
import Platform
import Synchronization
import Testing

/// A file that is mapped into memory, shared and writable, as a database or an editor would.
final class MappedFile: @unchecked Sendable {
  // The mapping is written by one thread at a time, and read through the file system only.
  let path: BytePath
  private let length: Int
  private var descriptor: Int32
  private var memory: UnsafeMutableRawPointer?

  /// - `closesDescriptor`: only the mapping is left of the writer.
  init(pages: Int, closesDescriptor: Bool = false) throws {
    let folder = try #require(Self.folder, "there is no such folder")
    var template = folder.appending("fullbore-mapped-XXXXXX").bytes.map { CChar(bitPattern: $0) } + [0]
    let descriptor = mkstemp(&template)
    try check(descriptor >= 0)
    path = BytePath(cString: template)
    length = pages * 4096
    let bytes = [UInt8](repeating: 0, count: length)
    try check(write(descriptor, bytes, length) == length && fsync(descriptor) == 0)
    memory = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    try check(memory != MAP_FAILED)
    if closesDescriptor { close(descriptor) }
    self.descriptor = closesDescriptor ? -1 : descriptor
  }

  deinit {
    unmap()
    path.withCString { _ = unlink($0) }
  }

  func unmap() {
    if let memory { munmap(memory, length) }
    memory = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  /// Writes `version` into the first bytes of each page.
  func store(_ version: UInt64, into pages: Range<Int>) {
    for page in pages { memory!.storeBytes(of: version, toByteOffset: page * 4096, as: UInt64.self) }
  }

  /// The versions of the pages that were read.
  static func versions(in bytes: [UInt8]) -> [UInt64] {
    bytes.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count - 7, by: 4096).map { bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self) }
    }
  }

  static var isSupported: Bool { folder != nil }

  /// One on a disk, as a file system with an id of its own is: tmpfs never shows what is written through a mapping.
  private static let folder: BytePath? = (["/var/tmp", "/tmp"] as [BytePath]).first { folder in
    var status = stat()
    return folder.withCString { stat($0, &status) } == 0 && FileStamp(status, at: folder).volume?.id != nil
  }
}

/// Tells a thread that it is to end.
final class StopMark: Sendable {
  private let mark = Atomic(false)
  var isSet: Bool { mark.load(ordering: .relaxed) }
  func set() { mark.store(true, ordering: .relaxed) }
}
