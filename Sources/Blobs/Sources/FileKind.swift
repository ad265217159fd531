import Platform

/// The kind of object at a path.
package enum FileKind: String, Sendable {
  case file = "a regular file"
  case folder = "a folder"
  case pipe = "a pipe"
  case socket = "a socket"
  case device = "a device"
  case other = "neither file nor folder"

  /// `mode` is `st_mode`.
  package init(mode: mode_t) {
    self =
      switch mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .folder
      case S_IFIFO: .pipe
      case S_IFSOCK: .socket
      case S_IFCHR, S_IFBLK: .device
      default: .other
      }
  }
}
