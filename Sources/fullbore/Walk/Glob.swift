import Blobs
import Platform

/// A pattern of the shell's kind: `*`, `?`, `[a-z]`. `*` also stands for slashes; `?` and brackets stand for one Unicode
/// scalar, or for one byte that is not valid UTF-8.
///
/// `x` is compared with names and with whole paths. `/x` and `./x` are compared with paths alone, so they mean only what is
/// at the top of a source. `x/` means a folder, and all that is below it.
struct Glob: Sendable, Hashable {
  /// As it was given.
  let pattern: BytePath
  /// Without the slashes at both ends.
  private let core: BytePath
  /// It is compared with whole paths only.
  private let isRooted: Bool
  /// It names no file, but a folder.
  let isOfFolder: Bool
  /// It says where something is, and not only what it is called.
  let isOfPath: Bool

  init(_ pattern: BytePath) {
    self.pattern = pattern
    var rest = pattern.bytes[...]
    while rest.first == slash || rest.starts(with: [dot, slash]) { rest = rest.dropFirst(rest.first == slash ? 1 : 2) }
    isRooted = rest.count < pattern.bytes.count
    isOfFolder = rest.last == slash
    while rest.last == slash { rest.removeLast() }
    core = BytePath(rest)
    isOfPath = isRooted || rest.contains(slash)
  }

  /// Why nothing can ever match, or what is meant is not clear; nil: it is a pattern.
  var problem: String? {
    if core.isEmpty { return "it names nothing" }
    if let problem = GlobSyntax(core.bytes).problem { return problem }
    let parts = core.bytes.split(separator: slash, omittingEmptySubsequences: false)
    if parts.contains(where: { $0.isEmpty || $0.elementsEqual([dot]) || $0.elementsEqual([dot, dot]) }) {
      return "no path of a file has '//', '.' or '..' in it"
    }
    return nil
  }

  /// Whether the path of a file or folder, or its last component, is of this pattern; whether it is to be a folder is not
  /// looked at. `paths` are the ways in which the path may be written.
  func matches(_ paths: [BytePath], _ name: BytePath, inAnyCase: Bool = false) -> Bool {
    let flags = inAnyCase ? foldingCase : 0
    return paths.contains { matches($0, flags) } || !isRooted && matches(name, flags)
  }

  /// Whether one of the folders that the paths lead through is of this pattern.
  func matchesFolder(of paths: [BytePath], inAnyCase: Bool = false) -> Bool {
    paths.contains { path in
      path.bytes.indices.contains { index in
        guard path.bytes[index] == slash else { return false }
        let folder = BytePath(path.bytes[..<index])
        return matches([folder], folder.name, inAnyCase: inAnyCase)
      }
    }
  }

  private func matches(_ path: BytePath, _ flags: Int32) -> Bool {
    let bytes = GlobBytes(core, path)
    let (pattern, name) = bytes.map { ($0.pattern, $0.name) } ?? (core, path)
    return pattern.withCString { pattern in name.withCString { fnmatch(pattern, $0, flags) == 0 } }
  }
}

private let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))

/// FNM_CASEFOLD of fnmatch(3), which glibc's headers show only with _GNU_SOURCE.
private let foldingCase: Int32 = 1 << 4

/// `--include` and `--exclude`: a file is taken when an include names it, or there is none, and no exclude does.
/// A folder that is excluded is not entered.
struct GlobFilter: Sendable, Hashable {
  var includes: [Glob] = []
  var excludes: [Glob] = []
  /// Names of sources that arrive as folders of their own. `/x` means their top too, where `NAME/x` arrives.
  var sourceNames: Set<BytePath> = []

  init(includes: [Glob] = [], excludes: [Glob] = [], sourceNames: Set<BytePath> = []) {
    self.includes = includes
    self.excludes = excludes
    self.sourceNames = sourceNames
  }

  init(_ arguments: Arguments, _ sources: [BytePath]) throws(UsageError) {
    includes = try Self.globs("include", arguments)
    excludes = try Self.globs("exclude", arguments)
    sourceNames = Set(sources.filter { !$0.sendsContents }.map(\.name))
  }

  private static func globs(_ option: String, _ arguments: Arguments) throws(UsageError) -> [Glob] {
    let globs = arguments.all(option).map { Glob($0) }
    for glob in globs {
      if let problem = glob.problem { throw UsageError("--\(option) '\(shown(glob.pattern))': \(problem)") }
    }
    return globs
  }

  /// Whether a file is named by `glob`, one of the includes.
  func includes(_ glob: Glob, _ relative: BytePath, _ name: BytePath, inAnyCase: Bool = false) -> Bool {
    let paths = paths(relative, for: glob)
    return glob.isOfFolder
      ? glob.matchesFolder(of: paths, inAnyCase: inAnyCase) : glob.matches(paths, name, inAnyCase: inAnyCase)
  }

  func includes(_ relative: BytePath, _ name: BytePath) -> Bool {
    includes.isEmpty || includes.contains { includes($0, relative, name) }
  }

  /// Whether `glob`, one of the excludes, leaves out a file, or something of which the name alone is known; `isFolder`: a
  /// folder.
  func excludes(_ glob: Glob, _ relative: BytePath, _ name: BytePath, isFolder: Bool) -> Bool {
    (isFolder || !glob.isOfFolder) && glob.matches(paths(relative, for: glob), name)
  }

  func excludes(_ relative: BytePath, _ name: BytePath, isFolder: Bool) -> Bool {
    excludes.contains { excludes($0, relative, name, isFolder: isFolder) }
  }

  /// A path as it arrives, and for a pattern that says where something is, as it is within its source too.
  private func paths(_ relative: BytePath, for glob: Glob) -> [BytePath] {
    guard glob.isOfPath, let end = relative.bytes.firstIndex(of: slash),
      sourceNames.contains(BytePath(relative.bytes[..<end]))
    else { return [relative] }
    return [relative, BytePath(relative.bytes[(end + 1)...])]
  }
}

extension BytePath {
  /// Whether a folder that is given like this sends its contents, and does not arrive as a folder of its own.
  var sendsContents: Bool { hasTrailingSlash || name == "." || name == ".." }
}
