import Blobs
import Platform
import Synchronization

/// Standard output or standard error, buffered so that many short lines cost few system calls.
///
/// After a write error all further output is dropped, because an upload must not end when the reader of its output is
/// gone. `failure` returns the error.
final class Console: Sendable {
  /// Buffered; flush at the end, or when a person is waiting.
  static let output = Console(descriptor: 1, limit: 64 << 10)
  /// Not buffered.
  static let error = Console(descriptor: 2, limit: 0)

  private struct State {
    var buffer: [UInt8] = []
    /// The error number of the first failed write.
    var failure: Int32?
  }
  let descriptor: Int32
  private let limit: Int
  private let state = Mutex(State())
  private let isAbandoned = Atomic(false)

  init(descriptor: Int32, limit: Int) {
    self.descriptor = descriptor
    self.limit = limit
  }

  /// Drops all output from now on, because its reader does not read: a thread that writes may wait for ever, and no other
  /// one waits for that thread.
  func abandon() { isAbandoned.store(true, ordering: .relaxed) }

  func write(_ text: String) {
    if isAbandoned.load(ordering: .relaxed) { return }
    state.withLock { state in
      state.buffer.append(contentsOf: text.utf8)
      if state.buffer.count > limit { drain(&state) }
    }
  }

  func write(bytes: some Sequence<UInt8>) {
    if isAbandoned.load(ordering: .relaxed) { return }
    state.withLock { state in
      state.buffer.append(contentsOf: bytes)
      if state.buffer.count > limit { drain(&state) }
    }
  }

  func flush() { if !isAbandoned.load(ordering: .relaxed) { state.withLock { drain(&$0) } } }

  /// The error number of the first failed write; nil if there was none.
  var failure: Int32? { isAbandoned.load(ordering: .relaxed) ? nil : state.withLock { $0.failure } }

  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The size of the terminal; 80 columns and 24 rows if it cannot be determined.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  private func drain(_ state: inout State) {
    var start = 0
    while state.failure == nil && start < state.buffer.count {
      let count = state.buffer.withUnsafeBytes { Platform.write(descriptor, $0.baseAddress! + start, $0.count - start) }
      if count > 0 { start += count }
      if count < 0 && errno == EAGAIN {
        var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        poll(&wait, 1, 1000)
      } else if count < 0 && errno != EINTR {
        state.failure = errno
      }
    }
    state.buffer.removeAll(keepingCapacity: true)
  }
}

/// A name or message that is safe for a terminal: control characters become `\n` or `\x1b`, invalid UTF-8 becomes
/// U+FFFD.
func shown(_ path: BytePath) -> String { shown(path.description) }

func shown(_ text: String) -> String {
  if !text.unicodeScalars.contains(where: isControl) { return text }
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\n": result += "\\n"
    case "\t": result += "\\t"
    case "\r": result += "\\r"
    case _ where isControl(scalar): result += (scalar.value < 16 ? "\\x0" : "\\x") + String(scalar.value, radix: 16)
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

/// C0, DEL, C1, marks that change the text direction, and separators that some programs treat as line ends.
private func isControl(_ scalar: Unicode.Scalar) -> Bool {
  switch scalar.value {
  case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
  default: false
  }
}
