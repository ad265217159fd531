import BlobUpload
import Blobs
import Synchronization

/// Told by a push what happens, and tells the user. Any thread may call. Lines are buffered; only a reader who stops
/// reading a pipe holds the callers up, once the buffer is full.
protocol PushReport: Sendable {
  func started(_ file: PushedFile)
  /// The file is there: sent now, or found there.
  func finished(_ file: PushedFile, how: Finish)
  /// The file is not there. `message` says why and what to do; its name is added.
  func failed(_ file: PushedFile, _ message: String)
  /// A path that never became a file to push: unreadable, or nothing that can be sent.
  func failed(_ path: BytePath, _ message: String)
  /// It was under way when all was stopped: not there, and no failure of its own.
  func dropped(_ file: PushedFile)
  func leftOut(_ path: BytePath, reason: String)
  /// Something to know that concerns no one file. Shown unless `--quiet`.
  func notice(_ text: String)
  /// The destination does not answer, or answers again. Shown unless `--quiet`.
  func outage(_ outage: Outage)
  /// What ended it all before its time. Always shown.
  func ended(_ text: String)
  /// Last of all: everything is written and flushed when it returns.
  func summary(_ summary: PushSummary)
}

extension PushReport {
  /// What ended it all before its time; that it was interrupted, the summary tells.
  func tell(_ error: UploadError) { if error.side != .cancelled { ended(error.advised) } }
}

/// A file on its way.
struct PushedFile: Sendable {
  /// Absolute.
  let path: BytePath
  /// Where it arrives, below the destination.
  let relative: BytePath
  /// nil: only the end will tell.
  let length: Int64?
  /// The journal's number for it; 0 where there is none.
  let id: Int64
  let progress: Progress

  init(path: BytePath, relative: BytePath, length: Int64?, id: Int64 = 0, progress: Progress = Progress()) {
    self.path = path
    self.relative = relative
    self.length = length
    self.id = id
    self.progress = progress
  }
}

/// How a file came to be there.
enum Finish: Sendable, Hashable {
  /// `bytes` went over the line in this run, beginning at `resumedFrom`; 0: from the start.
  case sent(bytes: Int64, resumedFrom: Int64)
  /// By an earlier push: how that is known.
  case doneBefore(StoredEvidence)
  /// The server has the same bytes under the same name.
  case alreadyThere
}

extension StoredEvidence {
  /// What was asked of the server, for people.
  var text: String {
    switch self {
    case .journal: "not asked"
    case .length: "compared by length"
    case .digest: "compared by digest"
    case .bytes: "read back and compared"
    }
  }
}

/// Totals of a push; written by whoever pushes, sampled by whoever shows.
final class PushCounters: Sendable {
  let filesFound = Atomic<Int>(0)
  let bytesFound = Atomic<Int64>(0)
  /// The sources are walked to the end: `filesFound` and `bytesFound` stay.
  let isListed = Atomic<Bool>(false)
  let bytes = UploadTotals()
  /// Bytes that were read to be compared with what the server has.
  let comparedBytes = Atomic<Int64>(0)
  let large = LargeFiles()
  /// Lengths of files that are settled in any way: their share of the whole.
  let settledBytes = Atomic<Int64>(0)
  let filesSent = Atomic<Int>(0)
  let filesDoneBefore = Atomic<Int>(0)
  /// Of the files done before, those that were compared with the server's.
  let filesComparedByLength = Atomic<Int>(0)
  let filesComparedByDigest = Atomic<Int>(0)
  let filesReadBack = Atomic<Int>(0)
  let filesAlreadyThere = Atomic<Int>(0)
  let filesLeftOut = Atomic<Int>(0)
  /// Files and folders whose names begin with a dot, without `--hidden`.
  let filesHidden = Atomic<Int>(0)
  let filesFailed = Atomic<Int>(0)
  /// Some of what was to be sent has no entry in the journal, so that a resume would not know of it.
  let isIncomplete = Atomic<Bool>(false)
  /// Another process sends some of the files, and is waited for.
  let waitsForOthers = Atomic<Bool>(false)

  /// Counts a file as found.
  func found(length: Int64?) {
    filesFound.add(1, ordering: .relaxed)
    bytesFound.addClamped(length ?? 0)
  }

  /// Counts a file that was found as not found: it is no business of this run, or comes again.
  func withdrawn(length: Int64?) {
    filesFound.subtract(1, ordering: .relaxed)
    bytesFound.addClamped(Int64(0).subtractingClamped(length ?? 0))
  }

  /// Everything is listed and settled.
  var isIdle: Bool {
    let there = filesSent.load(ordering: .relaxed) + filesAlreadyThere.load(ordering: .relaxed)
    let settled = there + filesDoneBefore.load(ordering: .relaxed) + filesFailed.load(ordering: .relaxed)
    return isListed.load(ordering: .relaxed) && settled == filesFound.load(ordering: .relaxed)
  }

  /// Counts a file as there.
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

  /// Counts as failed what never became a file to push.
  func notFound() {
    filesFound.add(1, ordering: .relaxed)
    isIncomplete.store(true, ordering: .relaxed)
    failed(length: 0)
  }

  func failed(length: Int64?) {
    filesFailed.add(1, ordering: .relaxed)
    settledBytes.addClamped(length ?? 0)
  }

  /// `exit` is what the shell is told, and `ended` what ended it all before its time.
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
      filesFailed: filesFailed.load(ordering: .relaxed),
      elapsed: elapsed, exit: exit, error: ended.flatMap { $0.side == .cancelled ? nil : $0.message },
      isInterrupted: exit == .interrupted, isDryRun: isDryRun)
  }
}

/// The last line.
struct PushSummary: Sendable, Hashable {
  var filesFound = 0
  var bytesFound: Int64 = 0
  var filesSent = 0
  /// Bytes that were handed to connections in this run, whatever became of them; what was sent twice counts twice.
  var bytesSent: Int64 = 0
  /// Bytes of which the servers said in this run that they hold them.
  var bytesAcknowledged: Int64 = 0
  var filesDoneBefore = 0
  /// Of the files done before, those that were compared with the server's.
  var filesComparedByLength = 0
  var filesComparedByDigest = 0
  var filesReadBack = 0
  var filesAlreadyThere = 0
  /// Sockets, links to folders: nothing that can be sent.
  var filesLeftOut = 0
  /// Files and folders whose names begin with a dot, without `--hidden`.
  var filesHidden = 0
  var filesFailed = 0
  var elapsed: Duration = .zero
  /// What the shell is told.
  var exit = ExitStatus.ok
  /// What ended it all before its time; nil: nothing did, or the user.
  var error: String?
  var isInterrupted = false
  var isDryRun = false

  /// Files that were found, and came to no end of any kind.
  var filesNotTried: Int { max(0, filesFound - filesSent - filesDoneBefore - filesAlreadyThere - filesFailed) }

  var bytesPerSecond: Double {
    let seconds = Quantity.seconds(elapsed)
    return seconds > 0 ? Double(bytesSent) / seconds : 0
  }

  /// For people; one line.
  var text: String {
    let hidden = filesHidden > 0 ? "; \(Quantity.grouped(filesHidden)) hidden left out (--hidden sends them)" : ""
    if isDryRun {
      let failed = filesFailed > 0 ? "; \(Quantity.grouped(filesFailed)) failed, which would not be sent" : ""
      return
        "\(Quantity.plural(max(0, filesFound - filesFailed), "file")), \(Quantity.text(bytes: bytesFound)): nothing was "
        + "sent; neither the journal nor the server was asked what of it is there already\(failed)\(hidden)"
    }
    var parts = [
      "\(Quantity.plural(filesSent, "file")) sent, \(Quantity.text(bytes: bytesSent)) in \(Quantity.text(elapsed))"
    ]
    if bytesSent > 0 { parts[0] += " (\(Quantity.text(bytesPerSecond: bytesPerSecond)))" }
    let notAsked = filesDoneBefore - filesComparedByLength - filesComparedByDigest - filesReadBack
    for (count, how) in [
      (notAsked, StoredEvidence.journal.text), (filesComparedByDigest, StoredEvidence.digest.text),
      (filesReadBack, StoredEvidence.bytes.text),
      (filesComparedByLength, StoredEvidence.length.text + " (--verify reads back)"),
    ] where count > 0 { parts.append("\(Quantity.grouped(count)) done before, \(how)") }
    if filesAlreadyThere > 0 { parts.append("\(Quantity.grouped(filesAlreadyThere)) already there") }
    if filesLeftOut > 0 { parts.append("\(Quantity.grouped(filesLeftOut)) left out") }
    if filesFailed > 0 { parts.append("\(Quantity.grouped(filesFailed)) failed") }
    if error != nil { parts.append("stopped before its time") }
    if isInterrupted { parts.append("interrupted: run it again to go on") }
    return parts.joined(separator: "; ") + hidden
  }
}

/// The report that suits the options and where the output goes.
func pushReport(_ options: OutputOptions, _ counters: PushCounters) -> any PushReport {
  if options.isJSON { return JSONReport(Console.output, counters, options) }
  let isDumb = environment("TERM").map { $0 == "dumb" } ?? true
  if Console.output.isTerminal && !options.isQuiet && !isDumb {
    return TerminalReport(Console.output, counters, options)
  }
  return LineReport(Console.output, errors: Console.error, options)
}
