import BlobUpload
import Blobs
import Platform

/// Namespace for all journal suites, which are in separate files.
enum JournalTests {}

/// A journal file in a temporary folder.
final class JournalFolder: Sendable {
  let folder: BytePath

  init() {
    var template = Array("/tmp/fullbore-journal-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil)
    folder = template.withUnsafeBufferPointer { BytePath(cString: $0.baseAddress!) }
  }

  /// A folder that a child process can find that the test will kill: the child knows only the parent's process ID.
  init(for name: String) {
    folder = Self.folder(name, of: getpid())
    _ = folder.withCString { mkdir($0, 0o700) }
  }

  /// The path of the journal, as computed in the child process.
  static func pathInParent(_ name: String) -> BytePath { folder(name, of: getppid()).appending("journal") }

  private static func folder(_ name: String, of pid: pid_t) -> BytePath {
    BytePath("/tmp/fullbore-journal-\(pid)-\(name)")
  }

  deinit {
    for name in names { _ = folder.appending(name).withCString { unlink($0) } }
    _ = folder.withCString { rmdir($0) }
  }

  var path: BytePath { file("") }

  /// Names of the files in the folder.
  var names: [BytePath] {
    guard let stream = folder.withCString({ opendir($0) }) else { return [] }
    defer { closedir(stream) }
    var names: [BytePath] = []
    while let entry = readdir(stream) {
      let offset = MemoryLayout<dirent>.offset(of: \.d_name)!
      let name = BytePath(
        cString: UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Total size in bytes of the journal and its log on the disk.
  var size: Int64 {
    ["", "-wal"].reduce(into: 0) { sum, suffix in
      var status = stat()
      if file(suffix).withCString({ stat($0, &status) }) == 0 { sum += Int64(status.st_size) }
    }
  }

  func open(as mark: ProcessIdentity = .current) async throws(JournalError) -> Journal {
    try await Journal(at: path, as: mark)
  }

  private func file(_ suffix: String) -> BytePath { folder.appending(BytePath("journal" + suffix)) }
}

/// A process that does nothing until it is killed.
final class IdleProcess {
  let pid: pid_t
  let mark: ProcessIdentity
  private var isCollected = false

  init() {
    var pid = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("1000"), nil]
    precondition(posix_spawn(&pid, "/bin/sleep", nil, nil, &arguments, nil) == 0)
    for argument in arguments { free(argument) }
    self.pid = pid
    mark = ProcessIdentity(of: pid)!
  }

  deinit { if !isCollected { end() } }

  /// Kills the process, but does not collect its exit status.
  func kill() {
    Platform.kill(pid, SIGKILL)
    var info = siginfo_t()
    waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT)
  }

  func end() {
    kill()
    waitpid(pid, nil, 0)
    isCollected = true
  }

  /// The mark of a process that has ended.
  static func dead() -> ProcessIdentity {
    let process = IdleProcess()
    process.end()
    return process.mark
  }
}

extension JournalDestination {
  static let tus = JournalDestination(endpoint: "https://host.example/files/", protocolName: "tus")
  static let put = JournalDestination(endpoint: "https://host.example/files/", protocolName: "put", overwrite: true)
}

func intent(
  _ name: String = "a.jpg", version: String? = "1", instance: String = "i", length: Int64? = 100,
  from source: BytePath? = nil
) -> JournalIntent {
  JournalIntent(
    source: source ?? BytePath("/gallery/" + name), target: "https://host.example/files/" + name, path: BytePath(name),
    length: length, validator: version.map { Validator(version: $0, instance: instance) }, contentType: "image/jpeg",
    partSize: 50)
}

let session = UploadSession(state: ["url": "https://host.example/files/17"], limits: PartLimits(isParallel: true))

extension JournalClaim {
  /// The entry's ID for sending; nil if there is nothing to send.
  var id: Int64? {
    switch self {
    case .fresh(let id), .replaced(let id, _): id
    case .resume(let entry), .unsure(let entry): entry.id
    case .done, .busy: nil
    }
  }
  var name: String {
    switch self {
    case .fresh: "fresh"
    case .resume: "resume"
    case .unsure: "unsure"
    case .replaced: "replaced"
    case .done: "done"
    case .busy: "busy"
    }
  }
  var entry: JournalEntry? {
    switch self {
    case .resume(let entry), .unsure(let entry), .done(let entry), .replaced(_, let entry): entry
    case .fresh, .busy: nil
    }
  }
  var owner: ProcessIdentity? { if case .busy(let owner) = self { owner } else { nil } }
}

extension Journal {
  /// Claims one intent.
  func claim(
    _ intent: JournalIntent = intent(), at destination: JournalDestination = .tus, again: Bool = false
  ) throws(JournalError) -> JournalClaim {
    try claim([intent], destination: destinationID(destination), again: again)[0]
  }

  /// The only unfinished entry.
  func only() throws(JournalError) -> JournalEntry { try unfinished()[0] }
}
