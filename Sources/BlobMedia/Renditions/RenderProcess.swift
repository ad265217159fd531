import Blobs
import Platform
import Synchronization

/// The helper program at work: a picture goes in as an open file, and its rendering comes out of a pipe.
///
/// Photographs come from strangers, and decoders have faults: whatever one does to the helper, it does to that alone.
final class RenderProcess: Sendable {
  private let pid: pid_t
  /// Ends of pipes: what it renders, and what it has to say about it.
  private let output: Int32
  private let complaints: Int32
  // It is killed and reaped under this lock, so that no signal goes to a stranger of the same pid.
  private let status = Mutex<Int32?>(nil)

  /// Starts it. `input` is lent for the length of the call; nil: none.
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

  // One that is started between another's pipe and its mark "not for children" would keep that pipe open.
  private static let starting = Mutex(())

  deinit {
    kill()
    _ = wait(patience: .seconds(30))
    close(output)
    close(complaints)
  }

  /// Bytes of what it renders; 0 at the end, also when it was killed. Blocks up to `patience`, after which it is killed.
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

  /// Any thread may call.
  func kill() {
    status.withLock { if $0 == nil { _ = sendSignal(pid, SIGKILL) } }
  }

  /// Blocks until it has ended. nil: all went well; else what was wrong. One that has nothing more to give and does not
  /// end within `patience` is killed.
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
    // What others have written into it is not ours to show whole.
    let said = String(decoding: text, as: UTF8.self).trimmed.prefix(300)
    let line = said.split(separator: "\n").joined(separator: "; ")
    return RenderFailure(
      status: status >> 8 & 0xFF, text: line.isEmpty ? "the renderer ended with status \(status >> 8 & 0xFF)" : line)
  }

  /// What it says until it ends; nil: it does not end.
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
      // Left unreaped until the lock is held.
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
  /// nil: a signal ended it.
  var status: Int32?
  var text: String

  /// As the helper says that it can do this exactly not at all.
  static let refused: Int32 = 3
}

private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }

private func sendSignal(_ pid: pid_t, _ signal: Int32) -> Int32 { kill(pid, signal) }

private func receive(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}

// What is in our environment may be secret, and nothing of it is wanted. libvips keeps pictures in memory below a size,
// and files are no choice; its warnings are for its developers.
private let environment: [BytePath] = ["LC_ALL=C.UTF-8", "VIPS_DISC_THRESHOLD=1g", "VIPS_WARNING=0"]
