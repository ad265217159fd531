import Blobs
import Glibc

/// A pattern of the shell's kind: `*`, `?`, `[a-z]`. `*` also stands for slashes.
struct Glob: Sendable, Hashable {
  let pattern: BytePath

  init(_ pattern: BytePath) { self.pattern = pattern }

  /// Whether the arrival path or its last component is of this pattern.
  func matches(_ relative: BytePath, _ name: BytePath) -> Bool { matches(relative) || matches(name) }

  /// As `matches`, whatever the case of letters.
  func matchesInAnyCase(_ relative: BytePath, _ name: BytePath) -> Bool {
    matches(relative, inAnyCase) || matches(name, inAnyCase)
  }

  private func matches(_ path: BytePath, _ flags: Int32 = 0) -> Bool {
    pattern.withCString { pattern in path.withCString { fnmatch(pattern, $0, flags) == 0 } }
  }
}

/// FNM_CASEFOLD of fnmatch(3), which glibc's headers show only with _GNU_SOURCE.
private let inAnyCase: Int32 = 1 << 4

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
