import Blobs
import Platform

/// The lines that a program prints, read from a pipe.
final class ProgramLines {
  /// The descriptor that the program gets as its standard output and standard error.
  let end: Int32
  private let descriptor: Int32
  private var isEndOpen = true
  private let output: @Sendable (String) -> Void
  private var line: [UInt8] = []
  /// A longer line is divided.
  private static let longest = 4096

  /// nil: there are no more descriptors.
  init?(_ output: @escaping @Sendable (String) -> Void) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    (descriptor, end, self.output) = (ends[0], ends[1], output)
    // Programs that other threads start must not keep the pipe open.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
  }

  deinit {
    if isEndOpen { close(end) }
    close(descriptor)
  }

  /// Passes the lines on until the program closes the pipe or ends, which may leave another program that has the pipe
  /// open. Returns the program's status if it has ended. This call blocks.
  func read(until pid: pid_t) -> Int32? {
    close(end)
    isEndOpen = false
    var status: Int32?
    while status == nil {
      var found: Int32 = 0
      if waitpid(pid, &found, WNOHANG) == pid { status = found }
      // The bytes that the program has written before its end are in the pipe.
      if !drain() { break }
      if status == nil {
        var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&wait, 1, 50)
      }
    }
    if !line.isEmpty { say() }
    return status
  }

  /// Reads what is there. Returns false at the end of the pipe.
  private func drain() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Platform.read(descriptor, &buffer, buffer.count)
      if count == 0 { return false }
      if count < 0 {
        if errno == EINTR { continue }
        return errno == EAGAIN
      }
      for byte in buffer[..<count] {
        if byte != UInt8(ascii: "\n") { line.append(byte) }
        if byte == UInt8(ascii: "\n") || line.count >= Self.longest { say() }
      }
    }
  }

  private func say() {
    output(String(decoding: line, as: UTF8.self))
    line = []
  }
}
