import CSeccomp
import CVips
import Platform

/// Restricts what an exploited decoder can do: it may compute, read the original and write the rendering.
///
/// After `begin` the kernel refuses to open files, sockets and folders, to start processes and programs, to signal or
/// trace other processes, and to make memory executable. Descriptors that are already open stay usable: the original,
/// which is read-only, and two pipes to the parent process. Sizes and times of files can still be queried.
enum Confinement {
  /// Call this after all libraries are loaded and before the first byte of a picture is read. Throws if the kernel does
  /// not support it.
  static func begin() throws(Complaint) {
    let error = cseccomp_confine()
    if error != 0 {
      throw Complaint("the kernel does not confine the decoders (seccomp): \(String(cString: strerror(error)))")
    }
  }

  /// Attempts each forbidden operation and returns the results as text.
  static func report() -> String {
    var lines = ""
    var error: Int32 = 0
    var index: Int32 = 0
    while let name = cseccomp_attempt(index, &error) {
      lines += "\(String(cString: name)): \(error == 0 ? "done" : String(cString: strerror(error)))\n"
      index += 1
    }
    return lines
  }
}
