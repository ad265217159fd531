import BlobUpload
import Blobs
import Synchronization

/// Presents a check to the user: a line for each file that is not the same, and one sentence at the end. With `--json` one
/// object per line, as `docs/check-events.schema.json` describes it.
final class CheckReport: PushReport {
  private let options: CheckOptions
  private let counters: PushCounters
  private let display: ProgressDisplay
  private let state = Mutex(CheckTotals())

  init(_ options: CheckOptions, _ counters: PushCounters) {
    (self.options, self.counters) = (options, counters)
    display = ProgressDisplay(counters, options.push.output)
  }

  private var isJSON: Bool { options.push.output.isJSON }
  private var isVerbose: Bool { options.push.output.isVerbose }

  var totals: CheckTotals { state.withLock { $0 } }

  /// `files`: those of one photo, or another file. What is wrong with a photo is one line.
  func checked(_ files: [CheckedFile]) {
    state.withLock { for file in files { $0.add(file) } }
    for file in files { counters.compared(length: file.item.info.length, isRead: file.isRead) }
    for file in files where isJSON || file.result.isSame { tell(file) }
    let bad = isJSON ? [] : files.filter { !$0.result.isSame }
    if bad.isEmpty { return }
    let complaints = bad.map { file in
      let message = file.result.message.map { ": \(shown($0))" } ?? ""
      return "\(shown(file.item.target.plainPath)): \(file.result.title)\(message)"
    }
    let photo = files.count > 1 ? "of the \(files.count) files of one photo, " : ""
    display.message("\(photo)\(complaints.joined(separator: "; "))")
  }

  private func tell(_ file: CheckedFile) {
    let (path, source) = (file.item.target.plainPath, file.item.identity)
    if isJSON {
      var line = JSONLine("checked")
      line.add(path: path)
      line.add("source", source.description)
      if let group = file.item.group { line.add("group", group.key.description) }
      if let length = file.item.info.length { line.add("length", length) }
      line.add("result", file.result.word)
      if case .same(let evidence) = file.result {
        line.add("known_by", "\(evidence)")
        line.add("compared_before", file.wasKnown)
      }
      if let message = file.result.message { line.add("message", message) }
      return write(line)
    }
    if isVerbose, case .same(let evidence) = file.result {
      display.result("\(shown(path))  same, \(evidence.text)\(file.wasKnown ? " before" : "")")
    }
  }

  /// A file that only the destination has.
  func extra(_ path: BytePath) {
    state.withLock { $0.extra += 1 }
    if isJSON {
      var line = JSONLine("checked")
      line.add(path: path)
      line.add("result", "extra")
      write(line)
    } else if isVerbose {
      display.result("\(shown(path))  only at the destination")
    }
  }

  /// See `CheckTotals.hasSealedNames`.
  func noteSealedNames() { state.withLock { $0.hasSealedNames = true } }

  func unlisted(_ folder: BytePath) { state.withLock { $0.unlisted += 1 } }

  /// A source that could not become a file to compare.
  func failed(_ path: BytePath, _ message: String) {
    state.withLock { totals in
      totals.files += 1
      totals.unreadable += 1
    }
    if isJSON {
      var line = JSONLine("checked")
      line.add(path: path)
      line.add("result", "unreadable")
      line.add("message", message)
      return write(line)
    }
    display.message("\(shown(path)): not readable here: \(shown(message))")
  }

  func leftOut(_ path: BytePath, reason: String) {
    if isJSON {
      var line = JSONLine("left_out")
      line.add(path: path)
      line.add("message", reason)
      write(line)
    } else if isVerbose {
      display.result("\(shown(path))  left out: \(reason)")
    }
  }

  func began(at endpoint: String, speaking protocolName: String) {
    if isJSON {
      var line = JSONLine("destination")
      line.add("endpoint", endpoint)
      line.add("protocol", protocolName)
      write(line)
    } else if isVerbose {
      notice("\(endpoint): speaks \(protocolName)")
    }
  }

  func notice(_ text: String) {
    if isJSON {
      var line = JSONLine("notice")
      line.add("message", text)
      write(line)
    } else if !options.push.output.isQuiet {
      display.message("\(shown(text))")
    }
  }

  func outage(_ outage: Outage) { notice(outage.text) }

  func ended(_ text: String, _ error: UploadError?) {
    if !isJSON { return display.message("\(shown(text))") }
    var line = JSONLine("error")
    line.add("message", text)
    if let error { line.add("kind", error.kind) }
    if let status = error?.status { line.add("status", status) }
    write(line)
  }

  /// The last call. `problem`: why the results say nothing of all sources; nil: they do.
  func finish(_ totals: CheckTotals, _ exit: ExitStatus, _ problem: String?, elapsed: Duration) {
    let sentence = totals.sentence(options, problem)
    if isJSON { return display.end([totals.summary(sentence, exit, elapsed: elapsed).timed()]) }
    if options.push.output.isQuiet { return display.end([]) }
    var lines: [String] = []
    if totals.extra > 0 {
      lines.append(
        "\(Quantity.plural(totals.extra, "file")) only at \(options.place)\(isVerbose ? "" : " (-v names them)").")
    }
    if totals.unlisted > 0, isVerbose {
      lines.append("What else is in \(Quantity.plural(totals.unlisted, "folder")) there is not told.")
    }
    display.end(lines + [sentence])
  }

  private func write(_ line: JSONLine) { display.result(line.timed()) }

  // Events of a push that a check does not have.
  func started(_ file: PushedFile) {}
  func finished(_ file: PushedFile, how: Finish) {}
  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {
    failed(file.path, message)
  }
  func dropped(_ file: PushedFile) {}
  func summary(_ summary: PushSummary) {}
}

extension CheckedFile {
  /// Whether all bytes of the file were read to be compared.
  fileprivate var isRead: Bool {
    switch result {
    case .same(.bytes), .same(.digest), .different: !wasKnown
    case .same, .missing, .sealed, .unreadable, .notComparable: false
    }
  }
}

extension CheckedFile.Result {
  fileprivate var isSame: Bool { if case .same = self { true } else { false } }

  /// The result in a word of the JSON output.
  var word: String {
    switch self {
    case .same: "same"
    case .missing: "missing"
    case .sealed: "sealed"
    case .different: "different"
    case .unreadable: "unreadable"
    case .notComparable: "not_comparable"
    }
  }

  fileprivate var title: String {
    switch self {
    case .same: "same"
    case .missing: "missing at the destination"
    case .sealed: "sealed at the destination"
    case .different: "different at the destination"
    case .unreadable: "not readable here"
    case .notComparable: "not comparable"
    }
  }

  var message: String? {
    switch self {
    case .same, .missing: nil
    case .sealed(let path): path.description
    case .different(let message), .unreadable(let message), .notComparable(let message): message
    }
  }
}

extension CheckTotals {
  /// The last line of the JSON output of a check.
  func summary(_ sentence: String, _ exit: ExitStatus, elapsed: Duration) -> JSONLine {
    var line = JSONLine("summary")
    for (name, count) in counts { line.add(name, count) }
    line.add("bytes", bytes)
    line.add("seconds", seconds: elapsed)
    line.add("interrupted", exit == .interrupted)
    line.add("exit_status", exit.rawValue)
    line.add("message", sentence)
    return line
  }

  private var counts: [(String, Int)] {
    [
      ("files", files), ("same", byDigest + readBack), ("read_back", readBack), ("compared_before", knownBefore),
      ("size_only", bySize), ("missing", missing), ("sealed", sealed), ("different", different),
      ("unreadable", unreadable),
      ("not_comparable", notComparable), ("extra", extra), ("unlisted_folders", unlisted), ("hidden", hidden),
      ("filtered", filtered), ("left_out", leftOut),
    ]
  }
}
