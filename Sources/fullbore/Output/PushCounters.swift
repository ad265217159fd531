import BlobUpload
import Blobs
import Synchronization

/// Totals of a push. Uploading threads update them, and the report samples them.
///
/// The totals of several destinations are their sums, except for what was found: that is the same for each of them.
final class PushCounters: Sendable {
  /// The totals of each destination, if there are several. All that concerns the sources is counted in them, too.
  let parts: [PushCounters]
  private let counts = Mutex(FileCounts())
  /// All sources are listed, so the numbers of what was found are final.
  let isListed = Atomic<Bool>(false)
  let bytes = UploadTotals()
  /// Bytes read for comparison with the server's files.
  let comparedBytes = Atomic<Int64>(0)
  let large = LargeFiles()
  /// Some sources have no entry in the journal, so a resume would not include them.
  let isIncomplete = Atomic<Bool>(false)
  /// The command compares or restores files and sends none: `comparedBytes` shows how far it is.
  private let readsOnly: Bool
  /// Another process sends some of the files, and this one waits for it.
  let waitsForOthers = Atomic<Bool>(false)

  init(of parts: [PushCounters] = [], readsOnly: Bool = false) { (self.parts, self.readsOnly) = (parts, readsOnly) }

  /// The bytes by which the speed is computed: handed to connections, or read.
  var moved: Int64 { readsOnly ? comparedBytes.load(ordering: .relaxed) : bytes.sent }

  /// Bytes read of files that are not settled; 0 for a push, which knows the progress of each file.
  var readOfOpen: Int64 { readsOnly ? max(0, moved.subtractingClamped(files.readOfSettled)) : 0 }

  /// Counts a file of a comparison. `isRead`: all of it was read for that.
  func compared(length: Int64?, isRead: Bool) {
    count {
      $0.doneBefore.add(.bytes)
      $0.addSettled(bytes: length)
      if isRead { $0.readOfSettled = $0.readOfSettled.addingClamped(length ?? 0) }
    }
  }

  /// The numbers of files as of now.
  var files: FileCounts { counts.withLock { $0 } }

  func count(_ change: (inout FileCounts) -> Void) { counts.withLock { change(&$0) } }

  private func forEach(_ body: (PushCounters) -> Void) {
    body(self)
    for part in parts { body(part) }
  }

  private func countInEach(_ change: (inout FileCounts) -> Void) { forEach { $0.count(change) } }

  /// Counts a file as found.
  func found(length: Int64?) {
    countInEach {
      $0.found += 1
      if length == nil { $0.unsized += 1 }
      $0.addFound(bytes: length)
    }
  }

  /// Counts the length of a file that was counted as found before its length was known.
  func foundBytes(_ length: Int64?) { countInEach { $0.addFound(bytes: length) } }

  /// Counts files that options or their kind exclude.
  func leftOut(_ count: Int = 1) { countInEach { $0.leftOut += count } }

  func hidden() { countInEach { $0.hidden += 1 } }

  /// All sources are listed.
  func listed() { forEach { $0.isListed.store(true, ordering: .relaxed) } }

  /// A source that was found could not be read, and has no entry in the journal.
  func unreadable() {
    forEach { $0.isIncomplete.store(true, ordering: .relaxed) }
    failed(length: nil)
  }

  /// Reverses `found` for a file that is left to another run, or is found again later.
  func withdrawn(length: Int64?) { count { $0.withdraw(length: length) } }

  /// Everything is listed and finished.
  var isIdle: Bool { isListed.load(ordering: .relaxed) && files.open == 0 }

  /// Counts a file as being at the destination.
  func finished(_ file: PushedFile, how: Finish) {
    count { counts in
      switch how {
      case .sent: counts.sent += 1
      case .doneBefore(let evidence): counts.doneBefore.add(evidence)
      case .alreadyThere: counts.alreadyThere += 1
      }
      counts.addSettled(bytes: file.length)
    }
  }

  /// Counts a file as left out because another one has its name. It is not at the destination, and no file to send any more.
  func skipped(length: Int64?) {
    count {
      $0.withdraw(length: length)
      $0.skipped += 1
    }
  }

  /// Counts a source as failed that could not become a file to push.
  func notFound() {
    found(length: 0)
    unreadable()
  }

  func failed(length: Int64?) {
    countInEach {
      $0.failed += 1
      $0.addSettled(bytes: length)
    }
  }

  /// The summary of the current totals.
  /// - `exit`: the exit status of the process.
  /// - `ended`: the error that ended the push early.
  func summary(
    elapsed: Duration, exit: ExitStatus = .ok, ended: UploadError? = nil, isDryRun: Bool = false
  ) -> PushSummary {
    PushSummary(
      files: files, bytesSent: bytes.sent, bytesAcknowledged: bytes.acknowledged, elapsed: elapsed, exit: exit,
      error: ended.flatMap { $0.side == .cancelled ? nil : $0.message }, isInterrupted: exit == .interrupted,
      isDryRun: isDryRun)
  }
}
