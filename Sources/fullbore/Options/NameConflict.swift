import BlobUpload
import Blobs

/// What becomes of a file whose name another file has: one of this push, or one at the destination with other bytes.
enum NameConflict: String, Sendable, CaseIterable {
  /// The file fails, with advice.
  case fail
  /// The file gets a number behind its name, or in place of `{counter}` of the layout.
  case rename
  /// The file is left out. It is not at the destination, so the exit status is not 0.
  case skip
  /// A file at the destination is replaced. Of two files of one push the second one fails all the same: replacing the first
  /// one would lose it.
  case overwrite

  /// `counts`: the layout has a counter.
  init(_ arguments: Arguments, counts: Bool) throws(UsageError) {
    let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
    let given = try arguments.parsed("on-conflict", wanted: "one of \(known)") { NameConflict(rawValue: $0) }
    let overwrites = arguments.flag("overwrite")
    if overwrites, let given, given != .overwrite {
      throw UsageError("--overwrite and --on-conflict \(given.rawValue): which of the two?")
    }
    self = overwrites ? .overwrite : given ?? (counts ? .rename : .fail)
    if counts, self != .rename {
      throw UsageError(
        "{counter} in --layout counts files of one name, as --on-conflict rename: leave one of the two out")
    }
  }

  /// Why a file was left out.
  static let skipped = "another file has its name; --on-conflict rename sends it under another one"
}
