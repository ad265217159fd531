import Blobs
import Platform

/// The file of this program.
enum OwnProgram {
  /// Its path, from the system; empty if the system does not tell it. Symbolic links are resolved.
  static var path: BytePath {
    var buffer = [CChar](repeating: 0, count: 4096)
    #if os(Linux)
      let count = max(0, readlink("/proc/self/exe", &buffer, buffer.count))
      return BytePath(buffer.prefix(count).map { UInt8(bitPattern: $0) })
    #else
      var size = UInt32(buffer.count)
      guard _NSGetExecutablePath(&buffer, &size) == 0, let whole = realpath(buffer, nil) else { return BytePath([]) }
      defer { free(whole) }
      return BytePath(cString: whole)
    #endif
  }
}
