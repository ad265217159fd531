import Blobs
import Platform

let journalOption = OptionDeclaration.value(
  "journal", "FILE", "remembers what was done; $FULLBORE_JOURNAL, else under $XDG_STATE_HOME/fullbore")

/// The path of the journal: from the option, else from the environment, else the default.
func journalPath(_ arguments: Arguments) throws(UsageError) -> BytePath {
  if let given = arguments.value("journal") { return given.absolute() }
  if let given = environment("FULLBORE_JOURNAL") { return given.absolute() }
  guard let folder = stateFolder() else {
    throw UsageError("there is no home folder for the journal: give --journal FILE, or set HOME")
  }
  return folder.appending("journal.sqlite")
}

/// The folder for files that outlive a run; it may not exist. nil: the user has no home folder.
func stateFolder() -> BytePath? {
  // A relative XDG path must be ignored. XDG Base Directory Specification 0.8.
  if let state = environment("XDG_STATE_HOME"), state.isAbsolute { return state.appending("fullbore") }
  guard let home = environment("HOME"), home.isAbsolute else { return nil }
  return home.appending(".local/state/fullbore")
}

extension BytePath {
  /// Whether there is no such file. A file that this user may not look for is not missing: opening it says why.
  var isMissing: Bool {
    var found = stat()
    if status(&found) == 0 { return false }
    return errno == ENOENT || errno == ENOTDIR
  }
}

/// The value of an environment variable; nil also if it is empty.
func environment(_ name: String) -> BytePath? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return BytePath(cString: value)
}
