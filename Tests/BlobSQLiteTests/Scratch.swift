import Platform

/// A temporary folder of the test; it is removed with its few files.
final class Scratch: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/fullbore-sqlite-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    for folder in ["\(path)/a/b", "\(path)/a", path] {
      for name in ["db", "db-wal", "db-shm"] { unlink("\(folder)/\(name)") }
      rmdir(folder)
    }
  }

  var file: String { path + "/db" }

  func mode(_ name: String) -> UInt32 {
    var status = stat()
    return stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o777 : 0
  }

  func write(_ text: String, mode: mode_t = 0o600) {
    let descriptor = creat(file, mode)
    precondition(descriptor >= 0 && Platform.write(descriptor, text, text.utf8.count) == text.utf8.count)
    fchmod(descriptor, mode)
    close(descriptor)
  }
}
