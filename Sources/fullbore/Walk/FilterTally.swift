import Blobs
import Synchronization

/// What `--include` and `--exclude` made of the files of a walk.
final class FilterTally: Sendable {
  private let included = Atomic<Int>(0)
  private let passedOver = Atomic<Int>(0)
  private let ofOtherCase = Atomic<Int>(0)
  private let excluded = Atomic<Int>(0)

  /// Whether a file is included, which is counted.
  func includes(_ relative: BytePath, _ name: BytePath, _ filter: GlobFilter) -> Bool {
    if filter.includes.isEmpty { return true }
    if filter.includes(relative, name) {
      included.add(1, ordering: .relaxed)
      return true
    }
    passedOver.add(1, ordering: .relaxed)
    if filter.includes.contains(where: { $0.matchesInAnyCase(relative, name) }) {
      ofOtherCase.add(1, ordering: .relaxed)
    }
    return false
  }

  /// A file or folder was excluded.
  func exclude() { excluded.add(1, ordering: .relaxed) }

  /// No file was as an `--include` wants it, though some were there.
  var isNothingIncluded: Bool {
    included.load(ordering: .relaxed) == 0 && passedOver.load(ordering: .relaxed) > 0
  }

  /// Why nothing is left to be sent; nil: the filters are not the reason.
  func complaint(_ filter: GlobFilter) -> String? {
    if isNothingIncluded {
      let globs = filter.includes.map { "--include '\(shown($0.pattern))'" }.joined(separator: " ")
      let others = ofOtherCase.load(ordering: .relaxed)
      let count = Quantity.plural(passedOver.load(ordering: .relaxed), "file")
      let hint = others == 0 ? "" : "; \(Quantity.grouped(others)) would match if case did not count"
      return "nothing is sent: \(count), none of which matches \(globs)\(hint)"
    }
    let count = excluded.load(ordering: .relaxed)
    if count == 0 { return nil }
    return "nothing is sent: --exclude leaves out all there is, \(Quantity.plural(count, "file")) or folders"
  }
}
