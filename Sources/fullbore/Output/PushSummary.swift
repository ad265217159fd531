import BlobUpload
import Blobs

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

  /// One of several destinations, with its own summary.
  struct Part: Sendable, Hashable {
    let title: String
    let url: String
    let summary: PushSummary
  }
  /// The destinations, if there are several.
  private(set) var parts: [Part] = []

  /// Files that were found but neither finished nor failed.
  var filesNotTried: Int {
    if !parts.isEmpty { return parts.reduce(0) { $0 + $1.summary.filesNotTried } }
    return max(0, filesFound - filesSent - filesDoneBefore - filesAlreadyThere - filesFailed)
  }

  /// The sums of several destinations, except for what was found and what was left out, which is the same for each.
  func adding(_ parts: [Part]) -> PushSummary {
    if parts.isEmpty { return self }
    var sum = self
    sum.parts = parts
    let each = parts.map(\.summary)
    func total(_ value: KeyPath<PushSummary, Int>) -> Int { each.reduce(0) { $0 + $1[keyPath: value] } }
    func total(_ value: KeyPath<PushSummary, Int64>) -> Int64 { each.lazy.map { $0[keyPath: value] }.clampedSum }
    // Each destination of a watch finds its files by itself.
    func most(_ value: WritableKeyPath<PushSummary, Int>) {
      sum[keyPath: value] = max(sum[keyPath: value], each.map { $0[keyPath: value] }.max() ?? 0)
    }
    for value in [\PushSummary.filesFound, \.filesLeftOut, \.filesHidden] { most(value) }
    sum.bytesFound = max(bytesFound, each.map(\.bytesFound).max() ?? 0)
    (sum.filesSent, sum.bytesSent) = (total(\.filesSent), total(\.bytesSent))
    sum.bytesAcknowledged = total(\.bytesAcknowledged)
    (sum.filesDoneBefore, sum.filesAlreadyThere) = (total(\.filesDoneBefore), total(\.filesAlreadyThere))
    (sum.filesFailed, sum.filesSkipped) = (total(\.filesFailed), total(\.filesSkipped))
    sum.filesRenamed = total(\.filesRenamed)
    return sum
  }

  var bytesPerSecond: Double {
    let seconds = Quantity.seconds(elapsed)
    return seconds > 0 ? Double(bytesSent) / seconds : 0
  }

  /// The text for people: a line for each destination.
  var lines: [String] { parts.isEmpty ? [text] : parts.map { "\($0.title): \($0.summary.text)" } }

  /// One line for people.
  var text: String {
    let hidden = filesHidden > 0 ? "; \(Quantity.grouped(filesHidden)) hidden left out (--hidden sends them)" : ""
    if isDryRun {
      let failed = filesFailed > 0 ? "; \(Quantity.grouped(filesFailed)) failed, which would not be sent" : ""
      return
        "\(Quantity.plural(max(0, filesFound - filesFailed), "file")), \(Quantity.text(bytes: bytesFound)): nothing was "
        + "sent; neither the journal nor the server was asked what of it is there already\(failed)\(hidden)"
    }
    // Bytes of files that are not finished must not look like an amount that has arrived.
    let areUnfinished = filesSent == 0 && bytesSent > 0 && filesNotTried + filesFailed > 0
    let whose = areUnfinished ? " of unfinished files" : ""
    var parts = ["\(Quantity.plural(filesSent, "file")) sent, \(Quantity.text(bytes: bytesSent))\(whose)"]
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
    if isInterrupted { parts.append(watch?.text(failed: filesFailed) ?? "interrupted: run it again to go on") }
    return parts.joined(separator: "; ") + hidden
  }
}
