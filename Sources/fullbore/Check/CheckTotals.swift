import BlobUpload
import Blobs

/// Counts the results of a check.
struct CheckTotals: Sendable, Hashable {
  var files = 0
  var bytes: Int64 = 0
  /// Numbers of files with the same content, by how that is known.
  var (byDigest, readBack) = (0, 0)
  /// Of these, the files that were compared in an earlier run.
  var knownBefore = 0
  /// Files of which only the size is known to be the same.
  var bySize = 0
  /// When the earliest of these comparisons was, in seconds since 1970.
  var firstKnown: Int64?
  var (missing, different, unreadable, notComparable) = (0, 0, 0, 0)
  /// Files that are missing, and of which a sealed one is there.
  var sealed = 0
  /// An earlier push has sent files there under sealed names, and this check looks for their own names.
  var hasSealedNames = false
  /// Files that only the destination has.
  var extra = 0
  /// Folders of the destination whose files could not be listed.
  var unlisted = 0
  /// Hidden files and folders, files that patterns leave out, and what is no file or left out by other options.
  var (hidden, filtered, leftOut) = (0, 0, 0)

  /// The files on the card that were not compared.
  var beside: [BytePath] = []

  mutating func add(_ file: CheckedFile) {
    if file.wasKnown { knownBefore += 1 }
    if let noted = file.noted { firstKnown = min(firstKnown ?? noted, noted) }
    add(file.result, file.item.info.length)
  }

  mutating func add(_ result: CheckedFile.Result, _ length: Int64?) {
    files += 1
    bytes = bytes.addingClamped(length ?? 0)
    switch result {
    case .same(.bytes): readBack += 1
    case .same(.digest): byDigest += 1
    case .same: bySize += 1
    case .missing: missing += 1
    case .sealed: sealed += 1
    case .different: different += 1
    case .unreadable: unreadable += 1
    case .notComparable: notComparable += 1
    }
  }

  /// Every file is at the destination with the same content.
  var areAllProved: Bool { files > 0 && byDigest + readBack == files }

  /// The last line: whether the files may be deleted, and what to do if not.
  func sentence(_ options: CheckOptions, _ problem: String?) -> String {
    let all = files == 1 ? "The file is" : "All \(Quantity.grouped(files)) files are"
    if let problem { return "Do not \(options.formatting) yet: \(problem)." }
    if files == 0 { return "Do not \(options.formatting): nothing was compared." }
    if areAllProved {
      let rest = notCompared
      return "\(all) at \(options.place) with the same content\(earlier). "
        + (rest.isEmpty
          ? "It is safe to \(options.formatting)."
          : "What was not compared is lost if you \(options.formatting): \(rest.joined(separator: ", ")).")
    }
    if byDigest + readBack + bySize == files {
      let some =
        bySize == files ? "only their sizes were compared" : "of \(Quantity.grouped(bySize)) only the size was compared"
      return "\(all) at \(options.place), but \(some), which proves nothing. Do not \(options.formatting) yet: "
        + "'\(options.again) \(options.reading)' reads them back."
    }
    return
      "Do not \(options.formatting): of \(Quantity.plural(files, "file")), \(problems.joined(separator: ", ")). \(remedy(options))"
  }

  /// The comparisons of earlier runs, in words; empty: there are none.
  private var earlier: String {
    guard knownBefore > 0 else { return "" }
    let some = knownBefore == files ? "compared" : "\(Quantity.grouped(knownBefore)) of them compared"
    let time = firstKnown.map { " since \(LocalTime.text($0, "%Y-%m-%d %H:%M"))" } ?? " before"
    return ", \(some)\(time) (--again compares all)"
  }

  /// The files that formatting a card also deletes, in words.
  private var notCompared: [String] {
    var parts: [String] = []
    if hidden > 0 { parts.append("\(Quantity.grouped(hidden)) hidden (--hidden compares them)") }
    if filtered > 0 { parts.append("\(Quantity.grouped(filtered)) left out by --include and --exclude") }
    if let first = beside.first {
      let more = beside.count > 1 ? " and \(Quantity.grouped(beside.count - 1)) more" : ""
      parts.append("\(shown(first))\(more), which no source has")
    }
    if leftOut > 0 { parts.append("\(Quantity.grouped(leftOut)) left out (-v names them)") }
    return parts
  }

  private var problems: [String] {
    let counts = [
      (missing, "missing there"), (sealed, "sealed there"), (different, "different there"),
      (unreadable, "not readable here"),
      (notComparable, "not comparable"), (bySize, "compared by size only"),
    ]
    return counts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
  }

  private func remedy(_ options: CheckOptions) -> String {
    if sealed > 0 {
      return "To compare what is sealed, give the options that the push had: '\(options.again) --seal RECIPIENT'."
    }
    if missing > 0, hasSealedNames {
      return "An earlier push has sent files there under sealed names. To compare these, give the options that it had: "
        + "'\(options.again) --seal RECIPIENT --seal-names'."
    }
    if missing > 0 {
      let also = different > 0 ? "; with --on-conflict rename also what is different, under a new name" : ""
      return "'\(options.mending)' sends what is missing\(also)."
    }
    if different > 0 {
      return "'\(options.mending) --on-conflict rename' sends what is different under a new name."
    }
    if bySize > 0 { return "'\(options.again) \(options.reading)' reads back what was compared by size only." }
    if unreadable > 0 {
      return "Run '\(options.again)' again once what is named above can be read, or is meant to be gone."
    }
    return "The lines above say why."
  }
}
