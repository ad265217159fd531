import Blobs
import Synchronization

/// What `--include`, `--exclude` and the rule for hidden names made of the files of a walk.
final class FilterTally: Sendable {
  /// Called with each file or folder that is left out because its name begins with a dot.
  let foundHidden: @Sendable (BytePath) -> Void
  /// Called with each source, absolute, in which there was nothing that could be sent or that a pattern left out.
  let foundNothing: @Sendable (BytePath) -> Void
  private let included = Atomic<Int>(0)
  private let passedOver = Atomic<Int>(0)
  private let ofOtherCase = Atomic<Int>(0)
  private let excluded = Atomic<Int>(0)
  /// By its place among the `--exclude` patterns, whether anything matched it.
  private let usedExcludes = Mutex<[Bool]>([])

  init(
    foundHidden: @escaping @Sendable (BytePath) -> Void = { _ in },
    foundNothing: @escaping @Sendable (BytePath) -> Void = { _ in }
  ) {
    self.foundHidden = foundHidden
    self.foundNothing = foundNothing
  }

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

  /// Whether a file or folder is excluded, which is counted.
  func excludes(_ relative: BytePath, _ name: BytePath, _ filter: GlobFilter) -> Bool {
    if filter.excludes.isEmpty { return false }
    let isExcluded = usedExcludes.withLock { used in
      if used.isEmpty { used = filter.excludes.map { _ in false } }
      var isExcluded = false
      // Every pattern is tried that has matched nothing yet, so that only those are complained of which never match.
      for (index, glob) in filter.excludes.enumerated() where !(isExcluded && used[index]) {
        guard glob.matches(relative, name) else { continue }
        isExcluded = true
        used[index] = true
      }
      return isExcluded
    }
    if isExcluded { excluded.add(1, ordering: .relaxed) }
    return isExcluded
  }

  /// The `--exclude` patterns that matched nothing, once the walk is over; nil: there are none.
  func uselessExcludes(_ filter: GlobFilter) -> String? {
    let used = usedExcludes.withLock { $0 }
    let globs = filter.excludes.enumerated().filter { !used.indices.contains($0.offset) || !used[$0.offset] }
    if globs.isEmpty { return nil }
    return globs.map { "--exclude '\(shown($0.element.pattern))'" }.joined(separator: " ") + " matched nothing"
  }

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
