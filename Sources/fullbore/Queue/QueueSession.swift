import BlobCrypto
import BlobQueue
import BlobUpload
import Blobs
import Platform

/// The part of a process in a queue that several machines share: its worker, and the journal in which it remembers what it has
/// claimed.
struct QueueSession: Sendable {
  let worker: QueueWorker
  let journal: Journal

  /// For calls that wait for the database.
  static let threads = BlockingPool("fullbore-database", threads: 8, patience: .seconds(10))

  /// The journal of this process, in a folder of its own. Nothing in it is needed after the process.
  static let journalPath =
    (environment("TMPDIR")?.absolute() ?? "/tmp").appending(BytePath("fullbore-queue-\(getpid())"))
    .appending("journal.sqlite")

  private static func open(_ queue: SharedQueue) async throws(UploadError) -> QueueSession {
    let made = journalPath.folder.withCString { mkdir($0, 0o700) }
    var status = stat()
    // An earlier process with this number may have been killed.
    if made != 0,
      journalPath.folder.withCString({ lstat($0, &status) }) != 0 || status.st_uid != getuid()
        || status.st_mode & (S_IFMT | 0o77) != S_IFDIR
    {
      throw UploadError(
        .giveUp, .journal, "\(shown(journalPath.folder)): it cannot be made, or belongs to another user; set TMPDIR")
    }
    removeFiles()
    do throws(JournalError) {
      let worker = try await threads.run { () throws(JournalError) in try QueueWorker(queue, pid: getpid()) }
      return QueueSession(worker: worker, journal: try await Journal(at: journalPath, as: .current, mirror: worker))
    } catch {
      throw UploadError(journal: error)
    }
  }

  private func close() async {
    await journal.close()
    await Self.threads.run { worker.close() }
    Self.removeFiles()
  }

  private static func removeFiles() {
    for suffix in ["", "-wal", "-shm", "-journal", "-seal"] {
      _ = BytePath(journalPath.bytes + suffix.utf8).withCString { unlink($0) }
    }
  }

  /// Runs `body` with a session, and again with a new one if other processes have taken over what this one had claimed.
  static func run(
    _ queue: SharedQueue, _ report: any PushReport, _ body: (QueueSession) async -> UploadError?
  ) async -> UploadError? {
    defer { _ = journalPath.folder.withCString { rmdir($0) } }
    while true {
      let session: QueueSession
      do throws(UploadError) { session = try await open(queue) } catch { return error }
      let ended = await body(session)
      await session.close()
      guard let ended, ended.isOfLostClaims, !Task.isCancelled else { return ended }
      report.notice("\(ended.message). This process goes on with what is free")
    }
  }
}

extension SharedQueue {
  /// The queue at a URL, for this machine.
  static func open(_ url: String, _ report: any PushReport) async throws(UploadError) -> SharedQueue {
    do throws(JournalError) {
      return try await QueueSession.threads.run { () throws(JournalError) in
        try SharedQueue(url, on: machineName(), notice: report.notice)
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Runs `work` on a thread that may block.
  func run<Result: Sendable>(
    _ work: @escaping @Sendable (SharedQueue) throws(JournalError) -> Result
  ) async throws(UploadError) -> Result {
    do throws(JournalError) {
      return try await QueueSession.threads.run { () throws(JournalError) in try work(self) }
    } catch {
      throw UploadError(journal: error)
    }
  }
}

/// The name of this machine, and something that tells it from others of the same name.
func machineName() -> String {
  var room = [CChar](repeating: 0, count: 256)
  let isNamed = gethostname(&room, room.count - 1) == 0
  let bytes = room.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
  let name = isNamed ? String(decoding: bytes, as: UTF8.self) : "machine"
  guard let file = fopen("/etc/machine-id", "r") else { return name }
  defer { fclose(file) }
  var id = [UInt8](repeating: 0, count: 64)
  let count = fread(&id, 1, id.count, file)
  return count == 0 ? name : "\(name)-\(SHA256.hex(of: Array(id.prefix(count))).prefix(8))"
}

extension UploadError {
  /// Other processes go on with what this one had claimed in a shared queue.
  var isOfLostClaims: Bool { side == .journal && (cause as? JournalError)?.cause is LostClaims }
}
