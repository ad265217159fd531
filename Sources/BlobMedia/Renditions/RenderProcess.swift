import Blobs
import Platform
import Synchronization

/// A running helper process: it reads a picture from an inherited file descriptor and writes the rendering to a pipe.
///
/// Pictures are untrusted input and decoders have bugs; an exploit or a crash affects only the helper process.
final class RenderProcess: Sendable {
  private let pid: pid_t
  /// The reading ends of the pipes for the helper's standard output and standard error.
  private let output: Int32
  private let complaints: Int32
  // The exit status. The process is killed and reaped under this lock, so that no signal can reach another process that
  // reuses the pid.
  private let status = Mutex<Int32?>(nil)

  /// Starts the helper. `input` is needed only during this call; nil passes no file.
  init(_ program: BytePath, _ arguments: [String], input: Int32?) throws(BlobError) {
    (pid, output, complaints) = try Self.starting.withLock { _ throws(BlobError) in
      let output = try Self.pipe()
      defer { close(output.write) }
      let complaints: (read: Int32, write: Int32)
      do throws(BlobError) { complaints = try Self.pipe() } catch {
        close(output.read)
        throw error
      }
      defer { close(complaints.write) }
      var pid: pid_t = 0
      let failure = spawnProgram(
        program, arguments.map { BytePath($0) }, variables: environment,
        descriptors: [(ours: input, its: 0), (ours: output.write, its: 1), (ours: complaints.write, its: 2)], &pid)
      if failure != 0 {
        close(output.read)
        close(complaints.read)
        throw systemError(failure, "start \(program)")
      }
      return (pid, output.read, complaints.read)
    }
  }

  // Serializes process starts: a child started after another start has created its pipe, but before the pipe is marked
  // close-on-exec, would inherit that pipe and keep it open.
  private static let starting = Mutex(())

  deinit {
    kill()
    _ = wait(patience: .seconds(30))
    close(output)
    close(complaints)
  }

  /// Reads the helper's output; returns 0 at the end, also after `kill`. Blocks up to `patience`, then kills the helper
  /// and throws.
  func read(into buffer: UnsafeMutableRawBufferPointer, patience: Duration) throws(BlobError) -> Int {
    while true {
      var wanted = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      let ready = poll(&wanted, 1, Int32(clamping: Int64(patience / .milliseconds(1))))
      if ready == 0 {
        kill()
        throw BlobError(.io, "the renderer gave nothing for \(patience): it hangs, and was ended")
      }
      let count = ready < 0 ? -1 : receive(output, buffer)
      if count >= 0 { return count }
      if errno != EINTR { throw systemError(errno, "read from the renderer") }
    }
  }

  /// Thread-safe.
  func kill() {
    status.withLock { if $0 == nil { _ = sendSignal(pid, SIGKILL) } }
  }

  /// Blocks until the helper has ended; kills it if it does not end within `patience`. Returns nil on success.
  func wait(patience: Duration) -> RenderFailure? {
    guard let text = complaint(patience) else {
      kill()
      _ = reap()
      return RenderFailure(status: nil, text: "the renderer did not end for \(patience): it hangs, and was ended")
    }
    let status = reap()
    if status == 0 { return nil }
    let signal = status & 0x7F
    if signal != 0 { return RenderFailure(status: nil, text: "the renderer was ended by signal \(signal)") }
    // Truncated, because the text may come from the picture's author.
    let said = String(decoding: text, as: UTF8.self).trimmed.prefix(300)
    let line = said.split(separator: "\n").joined(separator: "; ")
    return RenderFailure(
      status: status >> 8 & 0xFF, text: line.isEmpty ? "the renderer ended with status \(status >> 8 & 0xFF)" : line)
  }

  /// The helper's standard error up to its end; nil if the helper does not end in time.
  private func complaint(_ patience: Duration) -> [UInt8]? {
    let deadline = ContinuousClock.now + patience
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let left = max(.zero, deadline - .now)
      var wanted = pollfd(fd: complaints, events: Int16(POLLIN), revents: 0)
      let ready = poll(&wanted, 1, Int32(clamping: Int64((left / .milliseconds(1)).rounded(.up))))
      if ready == 0 { return nil }
      let count = ready < 0 ? -1 : chunk.withUnsafeMutableBytes { receive(complaints, $0) }
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { return text }
      if text.count < 4096 { text += chunk.prefix(count) }
    }
  }

  private func reap() -> Int32 {
    while true {
      if let status = status.withLock({ $0 }) { return status }
      // The process is not reaped until the lock is acquired.
      var info = siginfo_t()
      while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
      status.withLock { known in
        if known != nil { return }
        var status: Int32 = 0
        known = waitpid(pid, &status, WNOHANG) == pid ? status : 0x7F00
      }
    }
  }

  private static func pipe() throws(BlobError) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    if makePipe(&ends) != 0 { throw systemError(errno, "make a pipe") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }
}

struct RenderFailure: Sendable {
  /// The exit status; nil if a signal or a timeout ended the process.
  var status: Int32?
  var text: String

  /// The helper's exit status for an edit that it cannot render exactly.
  static let refused: Int32 = 3
}

private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }

private func sendSignal(_ pid: pid_t, _ signal: Int32) -> Int32 { kill(pid, signal) }

private func receive(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}

// The helper does not inherit the environment, which may contain secrets. libvips keeps pictures below the threshold in
// memory, because the helper cannot create files. Its warnings are for developers.
private let environment: [BytePath] = ["LC_ALL=C.UTF-8", "VIPS_DISC_THRESHOLD=1g", "VIPS_WARNING=0"]
