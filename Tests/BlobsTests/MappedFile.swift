import Blobs
import Platform
import Synchronization
import Testing

/// A file with a shared, writable mapping, like that of a database or an editor.
final class MappedFile: @unchecked Sendable {
  // One thread at a time writes to the mapping, and it is read only through the file system.
  let path: BytePath
  private let length: Int
  private var descriptor: Int32
  private var memory: UnsafeMutableRawPointer?

  /// - `closesDescriptor`: the writer keeps only the mapping.
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

  /// The versions in the pages that were read.
  static func versions(in bytes: [UInt8]) -> [UInt64] {
    bytes.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count - 7, by: 4096).map { bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self) }
    }
  }

  static var isSupported: Bool { folder != nil }

  /// A folder on a disk, which is a file system with its own id: tmpfs never shows writes through a mapping.
  private static let folder: BytePath? = (["/var/tmp", "/tmp"] as [BytePath]).first { folder in
    var status = stat()
    return folder.withCString { stat($0, &status) } == 0 && FileStamp(status, at: folder).volume?.id != nil
  }
}

/// Tells a thread to end.
final class StopMark: Sendable {
  private let mark = Atomic(false)
  var isSet: Bool { mark.load(ordering: .relaxed) }
  func set() { mark.store(true, ordering: .relaxed) }
}
