import BlobUpload
import Blobs

/// The final summary of a push.
struct PushSummary: Sendable, Hashable {
  var files = FileCounts()
  /// Bytes handed to connections in this run, including failed requests; bytes sent twice count twice.
  var bytesSent: Int64 = 0
  /// Bytes that servers acknowledged in this run.
  var bytesAcknowledged: Int64 = 0
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

  /// Files that were found but neither finished nor failed, at all destinations.
  var filesNotTried: Int {
    if !parts.isEmpty { return parts.reduce(0) { $0 + $1.summary.filesNotTried } }
    return max(0, files.open)
  }

  /// The sums of several destinations, except for what was found and what was left out, which is the same for each.
  func adding(_ parts: [Part]) -> PushSummary {
    if parts.isEmpty { return self }
    var sum = self
    sum.parts = parts
    sum.files = files.summing(parts.map(\.summary.files))
    sum.bytesSent = parts.lazy.map(\.summary.bytesSent).clampedSum
    sum.bytesAcknowledged = parts.lazy.map(\.summary.bytesAcknowledged).clampedSum
    return sum
  }

  var bytesPerSecond: Double {
    let seconds = Quantity.seconds(elapsed)
    return seconds > 0 ? Double(bytesSent) / seconds : 0
  }

  /// The text for people: a line for each destination.
  var lines: [String] { parts.isEmpty ? [text] : parts.map { ReportedDestination.prefix($0.title) + $0.summary.text } }

  /// One line for people.
  var text: String {
    let hidden = files.hidden > 0 ? "; \(Quantity.grouped(files.hidden)) hidden left out (--hidden sends them)" : ""
    if isDryRun {
      let failed = files.failed > 0 ? "; \(Quantity.grouped(files.failed)) failed, which would not be sent" : ""
      var bytes = Quantity.text(bytes: files.foundBytes)
      if files.unsized > 0 {
        let unsized = files.unsized == files.found ? "" : "\(bytes) and \(Quantity.plural(files.unsized, "file")) "
        bytes = "\(unsized)of unknown length"
      }
      return
        "\(Quantity.plural(max(0, files.found - files.failed), "file")), \(bytes): nothing was "
        + "sent; neither the journal nor the server was asked what of it is there already\(failed)\(hidden)"
    }
    // Bytes of files that are not finished must not look like an amount that has arrived.
    let areUnfinished = files.sent == 0 && bytesSent > 0 && filesNotTried + files.failed > 0
    let whose = areUnfinished ? " of unfinished files" : ""
    var parts = ["\(Quantity.plural(files.sent, "file")) sent, \(Quantity.text(bytes: bytesSent))\(whose)"]
    if watch != nil {
      // Most of the time a watch waits for files, so that its rate would say nothing.
      parts[0] = "watched for \(Quantity.text(elapsed)): \(parts[0])"
    } else {
      parts[0] += " in \(Quantity.text(elapsed))"
      if bytesSent > 0 { parts[0] += " (\(Quantity.text(bytesPerSecond: bytesPerSecond)))" }
    }
    let before = files.doneBefore
    for (count, how) in [
      (before.journal, StoredEvidence.journal.text), (before.digest, StoredEvidence.digest.text),
      (before.bytes, StoredEvidence.bytes.text),
      (before.length, StoredEvidence.length.text + " (--verify reads back)"),
    ] where count > 0 { parts.append("\(Quantity.grouped(count)) done before, \(how)") }
    if files.alreadyThere > 0 { parts.append("\(Quantity.grouped(files.alreadyThere)) already there") }
    if files.renamed > 0 { parts.append("\(Quantity.grouped(files.renamed)) under a new name") }
    if files.skipped > 0 {
      parts.append("\(Quantity.grouped(files.skipped)) skipped, since other files have their names (-v names them)")
    }
    if files.leftOut > 0 { parts.append("\(Quantity.grouped(files.leftOut)) left out") }
    if files.failed > 0 { parts.append("\(Quantity.grouped(files.failed)) failed") }
    if error != nil { parts.append("stopped before its time") }
    if isInterrupted { parts.append(watch?.text(failed: files.failed) ?? "interrupted: run it again to go on") }
    return parts.joined(separator: "; ") + hidden
  }
}
