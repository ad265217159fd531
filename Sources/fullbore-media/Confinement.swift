import CSeccomp
import CVips
import Platform

/// What a decoder that was taken over may still do: compute, read the original and write the rendering.
///
/// From `begin` on the kernel refuses to open files, sockets and folders, to start processes and programs, to signal or
/// trace others, and to make memory executable. What was opened before stays open: the original, which cannot be written
/// to, and the ends of two pipes to the program that started this one. Sizes and times of files can still be asked for.
enum Confinement {
  /// After all libraries are loaded, and before the first byte of a picture is looked at. Throws where the kernel cannot.
  static func begin() throws(Complaint) {
    let error = cseccomp_confine()
    if error != 0 {
      throw Complaint("the kernel does not confine the decoders (seccomp): \(String(cString: strerror(error)))")
    }
  }

  /// Tries what must not be possible, and says how each attempt ended.
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
