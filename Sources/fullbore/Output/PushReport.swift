import BlobUpload
import Blobs
import Synchronization

/// Receives the events of a push and presents them to the user. Thread-safe. Output is buffered; callers block only if
/// the reader of a pipe stops reading and the buffer is full.
protocol PushReport: Sendable {
  /// The destination has responded, and speaks this protocol. `resume` has several, and `watch` finds it out again after
  /// an outage.
  func began(at endpoint: String, speaking protocolName: String)
  func started(_ file: PushedFile)
  /// The file is at the destination: it was sent now, or was there before.
  func finished(_ file: PushedFile, how: Finish)
  /// The file is not at the destination. `message` gives the reason, without the file's name. `error`: nil if another process
  /// is sending the file. `advice`: what to do; a person is told the same advice only once.
  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?)
  /// A path that could not become a file to push: it is unreadable, or of a kind that cannot be sent.
  func failed(_ path: BytePath, _ message: String)
  /// The file was in progress when everything was stopped. It is neither finished nor failed.
  func dropped(_ file: PushedFile)
  func leftOut(_ path: BytePath, reason: String)
  /// A source was removed here, since its content was proved at the destination.
  func removed(_ path: BytePath)
  /// A file that a push without `--dry-run` would send, below its path at the destination. `what`: its size or its source.
  func chosen(_ path: BytePath, _ what: String, length: Int64?)
  /// Information that does not concern a single file. Shown unless `--quiet`.
  func notice(_ text: String)
  /// The destination does not respond, or responds again. Shown unless `--quiet`. While an outage lasts, this is called
  /// once in `outageInterval`.
  func outage(_ outage: Outage)
  var outageInterval: Duration { get }
  /// Writes a line that a program has printed which this one runs. nil: it may write to standard error by itself.
  var programOutput: (@Sendable (String) -> Void)? { get }
  /// Why the push has ended early or has failed as a whole. Always shown. `error`: nil if no request has failed.
  func ended(_ text: String, _ error: UploadError?)
  /// The last call: all output is written and flushed when it returns.
  func summary(_ summary: PushSummary)
}

extension PushReport {
  func ended(_ text: String) { ended(text, nil) }

  var outageInterval: Duration { .seconds(20) }

  var programOutput: (@Sendable (String) -> Void)? { nil }
  /// The number of removed files is said once at the end.
  func removed(_ path: BytePath) {}

  func chosen(_ path: BytePath, _ what: String, length: Int64?) { Console.output.write("\(shown(path))  \(what)\n") }

  /// Reports the error that ended the push early. An interruption is reported by the summary instead.
  func tell(_ error: UploadError) { if error.side != .cancelled { ended(error.advised, error) } }
}

/// A file in progress.
struct PushedFile: Sendable {
  /// The absolute path.
  let path: BytePath
  /// The path below the destination.
  let relative: BytePath
  /// The length; nil if it is known only at the end.
  let length: Int64?
  /// The ID in the journal; 0 without a journal.
  let id: Int64
  let progress: UploadProgress

  init(path: BytePath, relative: BytePath, length: Int64?, id: Int64 = 0, progress: UploadProgress = UploadProgress()) {
    self.path = path
    self.relative = relative
    self.length = length
    self.id = id
    self.progress = progress
  }
}

/// How a file came to be at the destination.
enum Finish: Sendable, Hashable {
  /// `bytes` were sent in this run, beginning at offset `resumedFrom`, which is 0 for a new upload.
  case sent(bytes: Int64, resumedFrom: Int64)
  /// An earlier push has sent the file; with the evidence for that.
  case doneBefore(StoredEvidence)
  /// The server already had the same bytes under the same name.
  case alreadyThere
}

extension StoredEvidence {
  /// A description of the evidence for people.
  var text: String {
    switch self {
    case .journal: "not asked"
    case .length: "compared by length"
    case .digest: "compared by digest"
    case .bytes: "read back and compared"
    }
  }
}

/// Totals of a push. Uploading threads update them, and the report samples them.
final class PushCounters: Sendable {
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

  /// Counts a file as found.
  func found(length: Int64?) {
    filesFound.add(1, ordering: .relaxed)
    bytesFound.addClamped(length ?? 0)
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
    filesFound.add(1, ordering: .relaxed)
    isIncomplete.store(true, ordering: .relaxed)
    failed(length: 0)
  }

  func failed(length: Int64?) {
    filesFailed.add(1, ordering: .relaxed)
    settledBytes.addClamped(length ?? 0)
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

/// The final summary of a push.
struct PushSummary: Sendable, Hashable {
  var filesFound = 0
  var bytesFound: Int64 = 0
  var filesSent = 0
  /// Bytes handed to connections in this run, including failed requests; bytes sent twice count twice.
  var bytesSent: Int64 = 0
  /// Bytes that servers acknowledged in this run.
  var bytesAcknowledged: Int64 = 0
  var filesDoneBefore = 0
  /// Numbers of the files done before that were compared with the server's.
  var filesComparedByLength = 0
  var filesComparedByDigest = 0
  var filesReadBack = 0
  var filesAlreadyThere = 0
  /// Sockets, links to folders and other objects that cannot be sent, and files excluded by options.
  var filesLeftOut = 0
  /// Hidden files and folders that were left out, because `--hidden` was not given.
  var filesHidden = 0
  var filesFailed = 0
  /// Not sent because another file has the name, as the user wants it.
  var filesSkipped = 0
  /// Sent under a name with a number.
  var filesRenamed = 0
  var elapsed: Duration = .zero
  /// The exit status of the process.
  var exit = ExitStatus.ok
  /// The error that ended the push early; nil if there was none, or if the user interrupted it.
  var error: String?
  var isInterrupted = false
  var isDryRun = false
  /// How a watch has ended; nil: it is none.
  var watch: WatchEnd?

  /// Files that were found but neither finished nor failed.
  var filesNotTried: Int { max(0, filesFound - filesSent - filesDoneBefore - filesAlreadyThere - filesFailed) }

  var bytesPerSecond: Double {
    let seconds = Quantity.seconds(elapsed)
    return seconds > 0 ? Double(bytesSent) / seconds : 0
  }

  /// One line for people.
  var text: String {
    let hidden = filesHidden > 0 ? "; \(Quantity.grouped(filesHidden)) hidden left out (--hidden sends them)" : ""
    if isDryRun {
      let failed = filesFailed > 0 ? "; \(Quantity.grouped(filesFailed)) failed, which would not be sent" : ""
      return
        "\(Quantity.plural(max(0, filesFound - filesFailed), "file")), \(Quantity.text(bytes: bytesFound)): nothing was "
        + "sent; neither the journal nor the server was asked what of it is there already\(failed)\(hidden)"
    }
    var parts = ["\(Quantity.plural(filesSent, "file")) sent, \(Quantity.text(bytes: bytesSent))"]
    if watch != nil {
      // Most of the time a watch waits for files, so that its rate would say nothing.
      parts[0] = "watched for \(Quantity.text(elapsed)): \(parts[0])"
    } else {
      parts[0] += " in \(Quantity.text(elapsed))"
      if bytesSent > 0 { parts[0] += " (\(Quantity.text(bytesPerSecond: bytesPerSecond)))" }
    }
    let notAsked = filesDoneBefore - filesComparedByLength - filesComparedByDigest - filesReadBack
    for (count, how) in [
      (notAsked, StoredEvidence.journal.text), (filesComparedByDigest, StoredEvidence.digest.text),
      (filesReadBack, StoredEvidence.bytes.text),
      (filesComparedByLength, StoredEvidence.length.text + " (--verify reads back)"),
    ] where count > 0 { parts.append("\(Quantity.grouped(count)) done before, \(how)") }
    if filesAlreadyThere > 0 { parts.append("\(Quantity.grouped(filesAlreadyThere)) already there") }
    if filesRenamed > 0 { parts.append("\(Quantity.grouped(filesRenamed)) under a new name") }
    if filesSkipped > 0 {
      parts.append("\(Quantity.grouped(filesSkipped)) skipped, since other files have their names (-v names them)")
    }
    if filesLeftOut > 0 { parts.append("\(Quantity.grouped(filesLeftOut)) left out") }
    if filesFailed > 0 { parts.append("\(Quantity.grouped(filesFailed)) failed") }
    if error != nil { parts.append("stopped before its time") }
    if isInterrupted { parts.append(watch?.text ?? "interrupted: run it again to go on") }
    return parts.joined(separator: "; ") + hidden
  }
}

/// Selects the report by the options and the kind of output.
func pushReport(_ options: OutputOptions, _ counters: PushCounters) -> any PushReport {
  if options.isJSON { return JSONReport(Console.output, counters, options) }
  let isDumb = environment("TERM").map { $0 == "dumb" } ?? true
  if Console.output.isTerminal && !options.isQuiet && !isDumb {
    return TerminalReport(Console.output, counters, options)
  }
  return LineReport(Console.output, errors: Console.error, counters, options)
}
