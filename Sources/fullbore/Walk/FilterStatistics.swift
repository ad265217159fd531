import Blobs
import Synchronization

/// Counts the effects of `--include`, `--exclude` and the rule for hidden names during a walk.
final class FilterStatistics: Sendable {
  /// Called for each file or folder that is left out because its name begins with a dot.
  let foundHidden: @Sendable (BytePath) -> Void
  /// Called for each source, as an absolute path, that contains nothing that can be sent or that a pattern excludes,
  /// and with whether it contains files of the journal in use.
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

  /// Whether a file is included. Counts the result.
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

  /// Whether a file or folder is excluded. Counts the result. Called first for the name alone, and again once the
  /// object is known to be a folder.
  func excludes(_ relative: BytePath, _ name: BytePath, isFolder: Bool = false, _ filter: GlobFilter) -> Bool {
    if filter.excludes.isEmpty { return false }
    let isExcluded = usedExcludes.withLock {
      $0.note(filter.excludes) { filter.excludes($0, relative, name, isFolder: isFolder) }
    }
    if isExcluded { excluded.add(1, ordering: .relaxed) }
    return isExcluded
  }

  /// Whether a source that is no file, such as the row of a database, is sent. Counts the result. `name`: its path below the
  /// destination, whose folders are compared as those of files are.
  func chooses(_ name: BytePath, _ filter: GlobFilter) -> Bool {
    var folder = BytePath("")
    for component in name.components.dropLast() {
      folder = folder.appending(component)
      if excludes(folder, component, isFolder: true, filter) { return false }
    }
    return !excludes(name, name.name, filter) && includes(name, name.name, filter)
  }

  /// The patterns that matched nothing in the whole walk; nil if there are none.
  func uselessPatterns(_ filter: GlobFilter) -> String? {
    let includes = usedIncludes.withLock { $0.useless(filter.includes) }.map { "--include '\(shown($0.pattern))'" }
    let excludes = usedExcludes.withLock { $0.useless(filter.excludes) }.map { "--exclude '\(shown($0.pattern))'" }
    // If no include matched anything, `complaint` reports that as the reason why nothing is sent.
    let useless = (isNothingIncluded ? [] : includes) + excludes
    return useless.isEmpty ? nil : useless.joined(separator: " ") + " matched nothing"
  }

  /// The number of files and folders that patterns have left out.
  var filtered: Int { passedOver.load(ordering: .relaxed) + excluded.load(ordering: .relaxed) }

  /// There were files, but none matched an `--include`.
  var isNothingIncluded: Bool {
    included.load(ordering: .relaxed) == 0 && passedOver.load(ordering: .relaxed) > 0
  }

  /// Why the filters leave nothing to send; nil if they are not the reason.
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
    return
      "nothing is sent: --exclude leaves out all there is, \(Quantity.plural(count, "file")) or folder\(count == 1 ? "" : "s")"
  }
}

/// Records which patterns have matched.
private struct UsedGlobs {
  /// Flags by the pattern's index; empty before the first call.
  private var used: [Bool] = []

  /// Whether one of the patterns matches.
  mutating func note(_ globs: [Glob], _ matches: (Glob) -> Bool) -> Bool {
    if used.isEmpty { used = globs.map { _ in false } }
    var isMatched = false
    // Also tries the other patterns that have matched nothing yet, so that only patterns without any match are
    // reported.
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
