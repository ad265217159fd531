import Blobs
import Platform

/// Sees every name that appears in a folder, also one that is gone again.
final class FolderWatch {
  private let descriptor: Int32

  init(_ folder: BytePath) throws(DemoError) {
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    let mask = UInt32(IN_CREATE | IN_MOVED_TO)
    if descriptor < 0 || folder.withCString({ inotify_add_watch(descriptor, $0, mask) }) < 0 {
      throw DemoError("watch \(folder): \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  /// Names that appeared since the last call.
  func newNames() -> [BytePath] {
    var names: [BytePath] = []
    let header = MemoryLayout<inotify_event>.size
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
    defer { buffer.deallocate() }
    while true {
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count <= 0 { return names }
      var offset = 0
      while offset + header <= count {
        let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
        let name = buffer[(offset + header)..<(offset + header + Int(event.len))]
        names.append(BytePath(name.prefix { $0 != 0 }))
        offset += header + Int(event.len)
      }
    }
  }
}
