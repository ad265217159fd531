import BlobUpload
import Blobs
import Synchronization

/// Receives the events of a push and presents them to the user. Thread-safe. Output is buffered; callers block only if
/// the reader of a pipe stops reading and the buffer is full.
protocol PushReport: OutageReport {
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
  /// Writes a line that a program has printed which this one runs. nil: it may write to standard error by itself.
  var programOutput: (@Sendable (String) -> Void)? { get }
  /// Why the push has ended early or has failed as a whole. Always shown. `error`: nil if no request has failed.
  func ended(_ text: String, _ error: UploadError?)
  /// The report for what concerns one of several destinations, which says so in each line and event. Only the whole report
  /// gets the summary.
  func about(_ destination: ReportedDestination) -> any PushReport
  /// The last call: all output is written and flushed when it returns.
  func summary(_ summary: PushSummary)
}

extension PushReport {
  func ended(_ text: String) { ended(text, nil) }

  var programOutput: (@Sendable (String) -> Void)? { nil }

  /// Commands whose output knows only one destination have one report.
  func about(_ destination: ReportedDestination) -> any PushReport { self }

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
  /// The name of the destination in messages; nil: there is only one.
  var destination: String?

  init(path: BytePath, relative: BytePath, length: Int64?, id: Int64 = 0, progress: UploadProgress = UploadProgress()) {
    self.path = path
    self.relative = relative
    self.length = length
    self.id = id
    self.progress = progress
  }

  /// The name in messages.
  var name: String { (destination.map { "\($0): " } ?? "") + shown(relative) }
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

/// One of several destinations in a report.
struct ReportedDestination: Sendable {
  /// A short name for people.
  let title: String
  /// The URL, for programs.
  let url: String
  let counters: PushCounters
}

extension ReportedDestination {
  /// Begins a line about a destination. `title`: a place's name ends in a colon already; nil: there is only one destination.
  static func prefix(_ title: String?) -> String { title.map { $0.hasSuffix(":") ? "\($0) " : "\($0): " } ?? "" }
}

/// Selects the report by the options and the kind of output. `destinations`: whose totals it writes, if there are several.
func pushReport(
  _ options: OutputOptions, _ counters: PushCounters, of destinations: [ReportedDestination] = []
) -> any PushReport {
  if options.isJSON { return JSONReport(Console.output, counters, options, of: destinations) }
  if options.drawsBoard {
    return TerminalReport(Console.output, counters, options, of: destinations)
  }
  return LineReport(Console.output, errors: Console.error, counters, options, of: destinations)
}
