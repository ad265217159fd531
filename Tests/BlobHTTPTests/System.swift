#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Blocks the thread: for sources that are slow.
func pauseThread(milliseconds: UInt32) { usleep(milliseconds * 1000) }

/// A whole file; empty when it is not there.
func textFile(_ path: String) -> String {
  guard let file = fopen(path, "r") else { return "" }
  defer { fclose(file) }
  var text: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    if count == 0 { return String(decoding: text, as: UTF8.self) }
    text += buffer[..<count]
  }
}
