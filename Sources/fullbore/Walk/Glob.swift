import Blobs
import Glibc

/// A pattern of the shell's kind: `*`, `?`, `[a-z]`. `*` also stands for slashes.
struct Glob: Sendable, Hashable {
  let pattern: BytePath

  init(_ pattern: BytePath) { self.pattern = pattern }

  /// Whether the arrival path or its last component is of this pattern.
  func matches(_ relative: BytePath, _ name: BytePath) -> Bool { matches(relative) || matches(name) }

  private func matches(_ path: BytePath) -> Bool {
    pattern.withCString { pattern in path.withCString { fnmatch(pattern, $0, 0) == 0 } }
  }
}

/// `--include` and `--exclude`: a file is taken when an include names it, or there is none, and no exclude does.
/// A folder that is excluded is not entered.
struct GlobFilter: Sendable, Hashable {
  var includes: [Glob] = []
  var excludes: [Glob] = []

  func includes(_ relative: BytePath, _ name: BytePath) -> Bool {
    includes.isEmpty || includes.contains { $0.matches(relative, name) }
  }

  func excludes(_ relative: BytePath, _ name: BytePath) -> Bool {
    excludes.contains { $0.matches(relative, name) }
  }
}
