import Blobs
import Platform

let journalOption = OptionDeclaration.value(
  "journal", "FILE", "remembers what was done; $FULLBORE_JOURNAL, else under $XDG_STATE_HOME/fullbore")

let sharedJournalOption = OptionDeclaration.value(
  "journal", "FILE", "what was done; else $FULLBORE_JOURNAL, or in $XDG_STATE_HOME; or postgres://…")

/// The path of the journal: from the option, else from the environment, else the default. Throws if it is a queue that several
/// machines share.
func journalPath(_ arguments: Arguments) throws(UsageError) -> BytePath {
  if try sharedQueue(arguments) != nil {
    throw UsageError(
      "the journal is a queue in a database, which push, resume and status know: give --journal FILE")
  }
  if let given = arguments.value("journal") { return given.absolute() }
  if let given = environment("FULLBORE_JOURNAL") { return given.absolute() }
  guard let folder = stateFolder() else {
    throw UsageError("there is no home folder for the journal: give --journal FILE, or set HOME")
  }
  return folder.appending("journal.sqlite")
}

/// The URL of the queue that is given in place of a journal; nil: a file is. It may have a password.
func sharedQueue(_ arguments: Arguments) throws(UsageError) -> String? {
  guard let given = arguments.value("journal") ?? environment("FULLBORE_JOURNAL") else { return nil }
  return databaseURL(given)
}

/// The URL of a PostgreSQL database, as libpq takes it; nil: this is none.
func databaseURL(_ given: BytePath) -> String? {
  guard let url = String(validating: given.bytes, as: UTF8.self), let end = url.firstRange(of: "://"),
    case let scheme = url[..<end.lowerBound].lowercased(), ["postgres", "postgresql"].contains(scheme)
  else { return nil }
  // libpq knows the scheme in small letters only.
  return scheme + url[end.lowerBound...]
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
