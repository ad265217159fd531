import BlobServer
import Blobs
import Platform

/// Where the access log goes: a file, to whose end lines are added, or standard output.
final class LogFile: @unchecked Sendable {
  // `descriptor` and `isInLine` belong to the thread of the log, after the initializer.
  /// nil: standard output.
  private let path: BytePath?
  private var descriptor: Int32 = -1
  /// Whether a write has ended in the middle of a line.
  private var isInLine = false

  /// Opens the file, so that a wrong path is reported before the server starts.
  init(_ path: BytePath) throws(ServerError) {
    self.path = path == "-" ? nil : path.absolute()
    guard reopen() else {
      throw ServerError("the log \(shown(path)) cannot be opened: \(String(cString: strerror(errno)))")
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Opens the file at the path, as after the old one was renamed. Returns false, with `errno`, if this fails; then the
  /// old file stays in use.
  func reopen() -> Bool {
    guard let path else { return true }
    // A named pipe without a reader is refused instead of waited for.
    let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    let fresh = path.withCString { open($0, flags, 0o640) }
    if fresh < 0 { return false }
    _ = fcntl(fresh, F_SETFL, O_APPEND)
    if descriptor >= 0 { close(descriptor) }
    (descriptor, isInLine) = (fresh, false)
    return true
  }

  /// Called when a write does not end: nothing else waits for it from now on. Any thread may call.
  func abandon() { if path == nil { Console.output.abandon() } }

  /// Writes lines with their line ends. Returns how many of the bytes were written; fewer than all: `errno` says why.
  func write(_ bytes: [UInt8]) -> Int {
    guard path != nil else {
      Console.output.write(bytes: bytes)
      Console.output.flush()
      guard let failure = Console.output.failure else { return bytes.count }
      errno = failure
      return 0
    }
    if isInLine, Platform.write(descriptor, "\n", 1) != 1 { return 0 }
    isInLine = false
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { Platform.write(descriptor, $0.baseAddress! + done, $0.count - done) }
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      done += count
    }
    isInLine = done > 0 && bytes[done - 1] != UInt8(ascii: "\n")
    return done
  }
}
