import Blobs
import Platform

/// A shell pattern with `*`, `?` and `[a-z]`. `*` also matches slashes; `?` and brackets match one Unicode scalar, or
/// one byte that is not valid UTF-8.
///
/// `x` is compared with names and whole paths. `/x` and `./x` are compared only with paths, so they match only at the
/// top of a source. `x/` matches a folder and everything below it.
struct Glob: Sendable, Hashable {
  /// The pattern as given.
  let pattern: BytePath
  /// The pattern without leading and trailing slashes.
  private let core: BytePath
  /// The pattern is compared only with whole paths.
  private let isRooted: Bool
  /// The pattern matches only folders.
  let isOfFolder: Bool
  /// The pattern specifies a location, not only a name.
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

  /// Why the pattern can never match or is ambiguous; nil if it is valid.
  var problem: String? {
    if core.isEmpty { return "it names nothing" }
    if let problem = GlobSyntax(core.bytes).problem { return problem }
    let parts = core.bytes.split(separator: slash, omittingEmptySubsequences: false)
    if parts.contains(where: { $0.isEmpty || $0.elementsEqual([dot]) || $0.elementsEqual([dot, dot]) }) {
      return "no path of a file has '//', '.' or '..' in it"
    }
    return nil
  }

  /// Whether the path of a file or folder, or its last component, matches. Ignores whether the pattern is for folders
  /// only. `paths` are alternative forms of the path.
  func matches(_ paths: [BytePath], _ name: BytePath, inAnyCase: Bool = false) -> Bool {
    let flags = inAnyCase ? foldingCase : 0
    return paths.contains { matches($0, flags) } || !isRooted && matches(name, flags)
  }

  /// Whether one of the parent folders in `paths` matches.
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

/// FNM_CASEFOLD of fnmatch(3), which glibc's headers define only with _GNU_SOURCE.
private let foldingCase: Int32 = 1 << 4

/// The filter of `--include` and `--exclude`. A file is sent if an include matches or there are no includes, and no
/// exclude matches. An excluded folder is not entered.
struct GlobFilter: Sendable, Hashable {
  var includes: [Glob] = []
  var excludes: [Glob] = []
  /// Names of sources that arrive as their own folder. `/x` also matches at the top of such a source, where the path is
  /// `NAME/x`.
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

  /// Whether `glob`, one of the includes, matches a file.
  func includes(_ glob: Glob, _ relative: BytePath, _ name: BytePath, inAnyCase: Bool = false) -> Bool {
    let paths = paths(relative, for: glob)
    return glob.isOfFolder
      ? glob.matchesFolder(of: paths, inAnyCase: inAnyCase) : glob.matches(paths, name, inAnyCase: inAnyCase)
  }

  func includes(_ relative: BytePath, _ name: BytePath) -> Bool {
    includes.isEmpty || includes.contains { includes($0, relative, name) }
  }

  /// Whether `glob`, one of the excludes, matches a file, or an object of which only the name is known.
  /// - `isFolder`: the object is a folder.
  func excludes(_ glob: Glob, _ relative: BytePath, _ name: BytePath, isFolder: Bool) -> Bool {
    (isFolder || !glob.isOfFolder) && glob.matches(paths(relative, for: glob), name)
  }

  func excludes(_ relative: BytePath, _ name: BytePath, isFolder: Bool) -> Bool {
    excludes.contains { excludes($0, relative, name, isFolder: isFolder) }
  }

  /// The path at the destination, and for a pattern with a location also the path within its source.
  private func paths(_ relative: BytePath, for glob: Glob) -> [BytePath] {
    guard glob.isOfPath, let end = relative.bytes.firstIndex(of: slash),
      sourceNames.contains(BytePath(relative.bytes[..<end]))
    else { return [relative] }
    return [relative, BytePath(relative.bytes[(end + 1)...])]
  }
}

extension BytePath {
  /// Whether a folder given in this form sends its contents instead of arriving as its own folder.
  var sendsContents: Bool { hasTrailingSlash || name == "." || name == ".." }
}
