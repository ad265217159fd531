import Blobs
import Platform
import Synchronization

/// A folder of its own for the demo, and the programs it started; both are gone when it is over, also after Ctrl-C.
final class DemoStage: Sendable {
  private struct State {
    var children: [ChildProcess] = []
    var isInterrupted = false
  }
  let folder: BytePath
  private let state = Mutex(State())

  /// Makes a new folder in `parent`.
  init(in parent: BytePath) throws(DemoError) {
    var template = parent.appending("fullbore-demo-XXXXXX").bytes.map { CChar(bitPattern: $0) } + [0]
    if mkdtemp(&template) == nil { throw DemoError("make a folder in \(parent): \(String(cString: strerror(errno)))") }
    folder = template.withUnsafeBufferPointer { BytePath(cString: $0.baseAddress!) }
  }

  var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

  func check() throws(DemoError) {
    if isInterrupted { throw .interrupted }
  }

  func makeFolder(_ name: BytePath) throws(DemoError) -> BytePath {
    let path = folder.appending(name)
    if path.withCString({ mkdir($0, 0o755) }) != 0 {
      throw DemoError("make \(path): \(String(cString: strerror(errno)))")
    }
    return path
  }

  /// Starts this very program with other arguments; under `fileLimit`, the kernel ends it with SIGXFSZ at the first
  /// byte it writes beyond that length of any file.
  func start(
    _ arguments: [BytePath], fileLimit: Int64? = nil, environment: [String: BytePath] = [:],
    output: ChildProcess.Output = .inherited
  ) throws(DemoError) -> ChildProcess {
    try check()
    Console.output.flush()
    // By our own number: in a shell, `self` would be the shell.
    let program = BytePath("/proc/\(getpid())/exe")
    let child: ChildProcess
    if let fileLimit {
      // bash counts in blocks of 1,024 bytes.
      let script = BytePath("ulimit -f \(fileLimit / 1024) && exec \"$@\"")
      child = try ChildProcess(
        "/bin/bash", ["-c", script, "bash", program] + arguments, environment: environment, output: output)
    } else {
      child = try ChildProcess(program, arguments, environment: environment, output: output)
    }
    let isLate = state.withLock { state in
      state.children.append(child)
      return state.isInterrupted
    }
    if isLate { child.send(SIGTERM) }
    return child
  }

  /// Asks everything that runs to end. Any thread may call.
  func interrupt() {
    let children = state.withLock { state in
      state.isInterrupted = true
      return state.children
    }
    for child in children { child.send(SIGTERM) }
  }

  /// Ends what runs and removes the folder with everything in it.
  func clear() {
    let children = state.withLock { $0.children }
    for child in children { child.send(SIGTERM) }
    for child in children { _ = child.wait() }
    removeTree(folder)
  }
}

/// Removes what is there, without following links; what cannot be removed stays.
func removeTree(_ path: BytePath) {
  if path.withCString({ unlink($0) }) == 0 { return }
  var names = NameList()
  // Closed again before the folders in it are entered: a deep tree must not run out of descriptors.
  if let folder = OpenFolder(path, "", follow: false) {
    while let name = folder.nextName() { names.append(name) }
  }
  while !names.isEmpty { removeTree(path.appending(names.popLast())) }
  _ = path.withCString { rmdir($0) }
}
