import Blobs
import Synchronization

/// What `--include`, `--exclude` and the rule for hidden names made of the files of a walk.
final class FilterTally: Sendable {
  /// Called with each file or folder that is left out because its name begins with a dot.
  let foundHidden: @Sendable (BytePath) -> Void
  /// Called with each source, absolute, in which there was nothing that could be sent or that a pattern left out, and with
  /// whether files of the journal in use were there.
  let foundNothing: @Sendable (BytePath, _ hasJournal: Bool) -> Void
  private let included = Atomic<Int>(0)
  private let passedOver = Atomic<Int>(0)
  private let ofOtherCase = Atomic<Int>(0)
  private let excluded = Atomic<Int>(0)
  private let usedIncludes = Mutex(UsedGlobs())
  private let usedExcludes = Mutex(UsedGlobs())

  init(
    foundHidden: @escaping @Sendable (BytePath) -> Void = { _ in },
    foundNothing: @escaping @Sendable (BytePath, _ hasJournal: Bool) -> Void = { _, _ in }
  ) {
    self.foundHidden = foundHidden
    self.foundNothing = foundNothing
  }

  /// Whether a file is included, which is counted.
  func includes(_ relative: BytePath, _ name: BytePath, _ filter: GlobFilter) -> Bool {
    if filter.includes.isEmpty { return true }
    if usedIncludes.withLock({ $0.note(filter.includes) { filter.includes($0, relative, name) } }) {
      included.add(1, ordering: .relaxed)
      return true
    }
    passedOver.add(1, ordering: .relaxed)
    if filter.includes.contains(where: { filter.includes($0, relative, name, inAnyCase: true) }) {
      ofOtherCase.add(1, ordering: .relaxed)
    }
    return false
  }

  /// Whether a file or folder is excluded, which is counted. Before it is known to be a folder, it is asked for by its name
  /// alone.
  func excludes(_ relative: BytePath, _ name: BytePath, isFolder: Bool = false, _ filter: GlobFilter) -> Bool {
    if filter.excludes.isEmpty { return false }
    let isExcluded = usedExcludes.withLock {
      $0.note(filter.excludes) { filter.excludes($0, relative, name, isFolder: isFolder) }
    }
    if isExcluded { excluded.add(1, ordering: .relaxed) }
    return isExcluded
  }

  /// The patterns that matched nothing, once the walk is over; nil: there are none.
  func uselessPatterns(_ filter: GlobFilter) -> String? {
    let includes = usedIncludes.withLock { $0.useless(filter.includes) }.map { "--include '\(shown($0.pattern))'" }
    let excludes = usedExcludes.withLock { $0.useless(filter.excludes) }.map { "--exclude '\(shown($0.pattern))'" }
    // Where no include matched anything, that is said as the reason why nothing is sent.
    let useless = (isNothingIncluded ? [] : includes) + excludes
    return useless.isEmpty ? nil : useless.joined(separator: " ") + " matched nothing"
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

/// Which of some patterns have matched anything.
private struct UsedGlobs {
  /// By their places; empty at the beginning.
  private var used: [Bool] = []

  /// Whether one of them matches.
  mutating func note(_ globs: [Glob], _ matches: (Glob) -> Bool) -> Bool {
    if used.isEmpty { used = globs.map { _ in false } }
    var isMatched = false
    // Every pattern is tried that has matched nothing yet, so that only those are complained of which never match.
    for (index, glob) in globs.enumerated() where !(isMatched && used[index]) {
      guard matches(glob) else { continue }
      isMatched = true
      used[index] = true
    }
    return isMatched
  }

  func useless(_ globs: [Glob]) -> [Glob] {
    globs.enumerated().filter { !used.indices.contains($0.offset) || !used[$0.offset] }.map(\.element)
  }
}
