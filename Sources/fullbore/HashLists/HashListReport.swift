import BlobUpload
import Blobs
import Synchronization

/// Presents a comparison with hash lists as `CheckReport` presents one with a destination.
final class HashListReport: Sendable {
  private let options: OutputOptions
  private let counters: PushCounters
  private let display: ProgressDisplay
  private let state = Mutex(CheckTotals())
  /// Lists that another list refers to, and that are not as it says.
  private let broken = Atomic(0)

  init(_ options: OutputOptions, _ counters: PushCounters) {
    (self.options, self.counters) = (options, counters)
    display = ProgressDisplay(counters, options)
  }

  /// Every file is as the lists say, and no other file is there.
  var isAllSame: Bool {
    let totals = state.withLock { $0 }
    return totals.areAllProved && totals.extra == 0 && broken.load(ordering: .relaxed) == 0
  }

  /// `path`: below the folder. `source`: the file; nil: it is not there.
  func checked(_ path: BytePath, _ source: BytePath?, _ length: Int64?, _ result: CheckedFile.Result) {
    state.withLock { $0.add(result, length) }
    if source != nil {
      let isRead = if case .same = result { true } else { result.isDifferent }
      counters.compared(length: length, isRead: isRead)
    }
    let message = result.message
    if options.isJSON {
      var line = JSONLine("checked")
      line.add(path: path)
      if let source { line.add("source", source.description) }
      if let length { line.add("length", length) }
      line.add("result", result.word)
      if case .same = result { line.add("known_by", "digest") }
      if let message { line.add("message", message) }
      return write(line)
    }
    if case .same = result {
      if options.isVerbose { display.result("\(shown(path))  same") }
      return
    }
    display.message("\(shown(path)): \(result.titleInList)\(message.map { ": \(shown($0))" } ?? "")")
  }

  /// A file that no list has.
  func extra(_ path: BytePath) {
    state.withLock { $0.extra += 1 }
    if options.isJSON {
      var line = JSONLine("checked")
      line.add(path: path)
      line.add("result", "extra")
      return write(line)
    }
    display.message("\(shown(path)): in no hash list")
  }

  /// A file or folder that could not be looked at.
  func unreadable(_ path: BytePath, _ message: String) { checked(path, nil, nil, .unreadable(message)) }

  /// A list that is not as another one says.
  func broken(_ path: BytePath, _ message: String) {
    broken.add(1, ordering: .relaxed)
    notice("\(path): \(message)", always: true)
  }

  func leftOut(_ path: BytePath, _ reason: String) {
    state.withLock { $0.leftOut += 1 }
    if options.isJSON {
      var line = JSONLine("left_out")
      line.add(path: path)
      line.add("message", reason)
      write(line)
    } else if options.isVerbose {
      display.result("\(shown(path))  left out: \(reason)")
    }
  }

  func notice(_ text: String, always: Bool = false) {
    if options.isJSON {
      var line = JSONLine("notice")
      line.add("message", text)
      write(line)
    } else if always || !options.isQuiet {
      display.message("\(shown(text))")
    }
  }

  func ended(_ error: UploadError) {
    if error.side == .cancelled { return }
    if !options.isJSON { return display.message("\(shown(error.message))") }
    var line = JSONLine("error")
    line.add("message", error.message)
    line.add("kind", error.kind)
    write(line)
  }

  /// The last call.
  func finish(_ exit: ExitStatus, _ ended: UploadError?, elapsed: Duration) {
    let totals = state.withLock { $0 }
    let sentence = sentence(totals, ended)
    let last = options.isJSON ? totals.summary(sentence, exit, elapsed: elapsed).timed() : sentence
    display.end(options.isQuiet ? [] : [last])
  }

  private func sentence(_ totals: CheckTotals, _ ended: UploadError?) -> String {
    let files = Quantity.plural(totals.files, "file")
    if let ended { return "The check \(ended.side == .cancelled ? "was interrupted" : "ended") after \(files)." }
    if isAllSame {
      return totals.files == 1 ? "The file is as the hash list says." : "All \(files) are as the hash lists say."
    }
    if totals.files == 0, totals.extra == 0 { return "The hash lists have no files, and nothing was compared." }
    let counts = [
      (totals.missing, "missing"), (totals.different, "different"), (totals.unreadable, "not readable"),
      (totals.notComparable, "not comparable"), (totals.extra, "in no hash list"),
    ]
    var parts = counts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
    let lists = broken.load(ordering: .relaxed)
    if lists > 0 { parts.append("\(Quantity.plural(lists, "list")) changed or missing") }
    return "Not all is as the hash lists say: of \(files), \(parts.joined(separator: ", "))."
  }

  private func write(_ line: JSONLine) { display.result(line.timed()) }
}

extension CheckedFile.Result {
  fileprivate var titleInList: String {
    switch self {
    case .same: "same"
    case .missing, .sealed: "missing"
    case .different: "different"
    case .unreadable: "not readable"
    case .notComparable: "not comparable"
    }
  }
}
