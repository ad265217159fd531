import BlobUpload
import Blobs
import Synchronization

/// Totals of a push. Uploading threads update them, and the report samples them.
///
/// The totals of several destinations are their sums, except for what was found: that is the same for each of them.
final class PushCounters: Sendable {
  /// The totals of each destination, if there are several. All that concerns the sources is counted in them, too.
  let parts: [PushCounters]
  let filesFound = Atomic<Int>(0)
  let bytesFound = Atomic<Int64>(0)
  /// All sources are listed, so `filesFound` and `bytesFound` are final.
  let isListed = Atomic<Bool>(false)
  let bytes = UploadTotals()
  /// Bytes read for comparison with the server's files.
  let comparedBytes = Atomic<Int64>(0)
  let large = LargeFiles()
  /// Total length of files that are finished or failed.
  let settledBytes = Atomic<Int64>(0)
  let filesSent = Atomic<Int>(0)
  let filesDoneBefore = Atomic<Int>(0)
  /// Numbers of the files done before that were compared with the server's.
  let filesComparedByLength = Atomic<Int>(0)
  let filesComparedByDigest = Atomic<Int>(0)
  let filesReadBack = Atomic<Int>(0)
  let filesAlreadyThere = Atomic<Int>(0)
  let filesLeftOut = Atomic<Int>(0)
  /// Hidden files and folders that were left out, because `--hidden` was not given.
  let filesHidden = Atomic<Int>(0)
  let filesFailed = Atomic<Int>(0)
  /// Files that were not sent because another file has their name, as the user wants it.
  let filesSkipped = Atomic<Int>(0)
  /// Files that were sent under a name with a number, since another file has their own.
  let filesRenamed = Atomic<Int>(0)
  /// Some sources have no entry in the journal, so a resume would not include them.
  let isIncomplete = Atomic<Bool>(false)
  /// Another process sends some of the files, and this one waits for it.
  let waitsForOthers = Atomic<Bool>(false)

  init(of parts: [PushCounters] = []) { self.parts = parts }

  private func forEach(_ count: (PushCounters) -> Void) {
    count(self)
    for part in parts { count(part) }
  }

  /// Counts a file as found.
  func found(length: Int64?) {
    forEach { $0.filesFound.add(1, ordering: .relaxed) }
    foundBytes(length)
  }

  /// Counts the length of a file that was counted as found before its length was known.
  func foundBytes(_ length: Int64?) {
    forEach { $0.bytesFound.addClamped(length ?? 0) }
  }

  /// Counts files that options or their kind exclude.
  func leftOut(_ count: Int = 1) { forEach { $0.filesLeftOut.add(count, ordering: .relaxed) } }

  func hidden() { forEach { $0.filesHidden.add(1, ordering: .relaxed) } }

  /// All sources are listed.
  func listed() { forEach { $0.isListed.store(true, ordering: .relaxed) } }

  /// A source that was found could not be read, and has no entry in the journal.
  func unreadable() {
    forEach { $0.isIncomplete.store(true, ordering: .relaxed) }
    failed(length: nil)
  }

  /// Reverses `found` for a file that is left to another run, or is found again later.
  func withdrawn(length: Int64?) {
    filesFound.subtract(1, ordering: .relaxed)
    bytesFound.addClamped(Int64(0).subtractingClamped(length ?? 0))
  }

  /// Everything is listed and finished.
  var isIdle: Bool {
    let there = filesSent.load(ordering: .relaxed) + filesAlreadyThere.load(ordering: .relaxed)
    let settled = there + filesDoneBefore.load(ordering: .relaxed) + filesFailed.load(ordering: .relaxed)
    return isListed.load(ordering: .relaxed) && settled == filesFound.load(ordering: .relaxed)
  }

  /// Counts a file as being at the destination.
  func finished(_ file: PushedFile, how: Finish) {
    switch how {
    case .sent: filesSent.add(1, ordering: .relaxed)
    case .doneBefore(let evidence):
      filesDoneBefore.add(1, ordering: .relaxed)
      switch evidence {
      case .journal: break
      case .length: filesComparedByLength.add(1, ordering: .relaxed)
      case .digest: filesComparedByDigest.add(1, ordering: .relaxed)
      case .bytes: filesReadBack.add(1, ordering: .relaxed)
      }
    case .alreadyThere: filesAlreadyThere.add(1, ordering: .relaxed)
    }
    settledBytes.addClamped(file.length ?? 0)
  }

  /// Counts a file as left out because another one has its name. It is not at the destination, and no file to send any more.
  func skipped(length: Int64?) {
    withdrawn(length: length)
    filesSkipped.add(1, ordering: .relaxed)
  }

  /// Counts a source as failed that could not become a file to push.
  func notFound() {
    found(length: 0)
    unreadable()
  }

  func failed(length: Int64?) {
    forEach {
      $0.filesFailed.add(1, ordering: .relaxed)
      $0.settledBytes.addClamped(length ?? 0)
    }
  }

  /// The summary of the current totals.
  /// - `exit`: the exit status of the process.
  /// - `ended`: the error that ended the push early.
  func summary(
    elapsed: Duration, exit: ExitStatus = .ok, ended: UploadError? = nil, isDryRun: Bool = false
  ) -> PushSummary {
    PushSummary(
      filesFound: filesFound.load(ordering: .relaxed), bytesFound: bytesFound.load(ordering: .relaxed),
      filesSent: filesSent.load(ordering: .relaxed), bytesSent: bytes.sent, bytesAcknowledged: bytes.acknowledged,
      filesDoneBefore: filesDoneBefore.load(ordering: .relaxed),
      filesComparedByLength: filesComparedByLength.load(ordering: .relaxed),
      filesComparedByDigest: filesComparedByDigest.load(ordering: .relaxed),
      filesReadBack: filesReadBack.load(ordering: .relaxed),
      filesAlreadyThere: filesAlreadyThere.load(ordering: .relaxed),
      filesLeftOut: filesLeftOut.load(ordering: .relaxed), filesHidden: filesHidden.load(ordering: .relaxed),
      filesFailed: filesFailed.load(ordering: .relaxed), filesSkipped: filesSkipped.load(ordering: .relaxed),
      filesRenamed: filesRenamed.load(ordering: .relaxed),
      elapsed: elapsed, exit: exit, error: ended.flatMap { $0.side == .cancelled ? nil : $0.message },
      isInterrupted: exit == .interrupted, isDryRun: isDryRun)
  }
}
