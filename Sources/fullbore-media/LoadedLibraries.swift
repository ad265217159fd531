import BlobCrypto
import Blobs
import Platform

/// Identifies the loaded shared libraries, because other versions of decoders and encoders may give other bytes.
enum LoadedLibraries {
  /// A digest of the libraries' names, sizes and modification times.
  static func digest() -> String {
    var text = ""
    for path in paths() {
      var status = stat()
      if stat(path, &status) == 0 {
        text += "\(path) \(status.st_size) \(status.st_mtim.tv_sec)\n"
      }
    }
    return String(Digest.hex(of: Array(text.utf8), .sha256).prefix(16))
  }

  private static func paths() -> [String] {
    guard let file = fopen("/proc/self/maps", "re") else { return [] }
    defer { fclose(file) }
    var found: Set<String> = []
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { free(line) }
    while getline(&line, &room, file) > 0, let text = line.map({ String(cString: $0) }) {
      if let slash = text.firstIndex(of: "/"), text.contains(".so") { found.insert(String(text[slash...].dropLast())) }
    }
    return found.sorted()
  }
}
